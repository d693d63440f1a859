//! Tools of known agents.

use super::kind::Category;

/// Names in lower case. A name in this table counts before the words in it.
const TOOLS: &[(Category, &[&str])] = &[
    (
        Category::Read,
        &[
            "read_file",
            "list_dir",
            "grep_search",
            "read",
            "ls",
            "list_directory",
            "view",
            "view_file",
            "open",
            "open_file",
            "cat",
            "notebookread",
            "webfetch",
            "web_fetch",
            "fetch",
            "read_many_files",
            "get_errors",
            "get_changed_files",
            "fetch_webpage",
            "readfile",
            "scroll_down",
            "scroll_up",
            "goto",
            "bashoutput",
            "taskoutput",
            "get_terminal_output",
            "strings",
        ],
    ),
    (
        Category::Write,
        &[
            "create_file",
            "apply_patch",
            "edit",
            "write",
            "multiedit",
            "notebookedit",
            "write_file",
            "edit_file",
            "str_replace",
            "str_replace_editor",
            "replace_string_in_file",
            "multi_replace_string_in_file",
            "insert_edit_into_file",
            "create_directory",
            "replace",
            "search_replace",
            "delete_file",
            "create",
            "insert",
            "edit_notebook_file",
            "write_to_file",
            "replace_in_file",
        ],
    ),
    (
        Category::Execute,
        &[
            "run_in_terminal",
            "bash",
            "shell",
            "exec",
            "exec_command",
            "execute_command",
            "run_shell_command",
            "local_shell",
            "terminal",
            "run_tests",
            "run_task",
            "python",
            "execute_bash",
            "write_stdin",
            "send_to_terminal",
            "runtests",
            "powershell",
            "execute_ipython_cell",
            "killshell",
            "submit",
            "unzip",
        ],
    ),
    (
        Category::Query,
        &[
            "semantic_search",
            "list_code_usages",
            "grep",
            "glob",
            "find",
            "search",
            "file_search",
            "websearch",
            "web_search",
            "google_web_search",
            "search_files",
            "codebase_search",
            "find_files",
            "search_dir",
            "search_file",
            "find_file",
            "toolsearch",
            "codesearch",
        ],
    ),
    (
        Category::Plan,
        &[
            "todowrite",
            "todoread",
            "taskcreate",
            "taskupdate",
            "tasklist",
            "taskget",
            "update_plan",
            "manage_todo_list",
            "write_todos",
            "todo_write",
            "exitplanmode",
            "enterplanmode",
        ],
    ),
    (
        Category::Media,
        &["screenshot", "view_image", "image_generation", "computer"],
    ),
    (
        Category::Other,
        &[
            "task",
            "agent",
            "skill",
            "think",
            "askuserquestion",
            "calculate",
        ],
    ),
];

/// The category of a known tool.
pub(super) fn known(name: &str) -> Option<Category> {
    // Longer than every name in the table.
    const LONGEST: usize = 40;
    if name.len() > LONGEST {
        return None;
    }
    // Tools of servers are often called `mcp__server__tool`.
    let bare = name.rsplit("__").next().unwrap_or(name);
    let lower = bare.to_ascii_lowercase();
    TOOLS
        .iter()
        .find(|(_, names)| names.contains(&lower.as_str()))
        .map(|(category, _)| *category)
}
