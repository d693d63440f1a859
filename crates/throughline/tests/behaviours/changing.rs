//! Tools that change while a run is in progress.

use std::sync::Arc;

use throughline::tool::{SetError, ToolOutput};
use throughline::{StopReason, Tool};
use throughline_testkit::scripted::Step;

use crate::behaviours::support::{Fake, Rig, both, result_text, said};

fn adding(tools: Vec<Arc<dyn Tool>>) -> Fake {
    Fake::doing("adder", move |_, context| {
        let tools = tools.clone();
        async move {
            context.add_tools(tools)?;
            Ok(ToolOutput::default())
        }
    })
}

#[test]
fn b44_an_added_tool_is_offered_from_the_next_model_call_of_this_run_on() {
    both(async |how| {
        let extra = Fake::named("extra");
        let steps = [
            // In the same round the tool is not offered yet.
            Step::calls([("c1", "adder", "{}"), ("c2", "extra", "{}")]),
            Step::calls([("c3", "extra", "{}")]),
            Step::text("done"),
            Step::text("next run"),
        ];
        let rig = Rig::new(how, steps, |agent| {
            agent.tool(adding(vec![Arc::new(extra.clone())]))
        });
        let outcome = rig.run("go").await;
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1,c2:error) a(c3) t(c3) a");
        assert_eq!(extra.runs(), 1);
        rig.run("again").await;
        let offered: Vec<_> = rig
            .client
            .asked()
            .into_iter()
            .map(|one| one.tools)
            .collect();
        assert_eq!(offered[0], ["adder"]);
        assert_eq!(offered[1], ["adder", "extra"]);
        assert_eq!(offered[2], ["adder", "extra"]);
        assert_eq!(offered[3], ["adder"]);
    });
}

#[test]
fn b45_a_tool_can_remove_replace_and_guard_others() {
    both(async |how| {
        let (old, new, kept) = (
            Fake::named("swap"),
            Fake::named("swap"),
            Fake::named("guard"),
        );
        let changer = {
            let new = new.clone();
            Fake::doing("changer", move |_, context| {
                let new = new.clone();
                async move {
                    context.remove_tool("gone")?;
                    context.replace_tool(Arc::new(new))?;
                    context.guard_tool("guard")?;
                    Ok(ToolOutput::default())
                }
            })
        };
        let gone = Fake::named("gone");
        let steps = [
            Step::calls([("c1", "changer", "{}")]),
            Step::calls([
                ("c2", "gone", "{}"),
                ("c3", "swap", "{}"),
                ("c4", "guard", "{}"),
            ]),
        ];
        let rig = Rig::new(how, steps, |agent| {
            agent
                .tool(changer)
                .tool(gone.clone())
                .tool(old.clone())
                .tool(kept.clone())
        });
        let outcome = rig.run("go").await;
        assert_eq!(outcome.stop, StopReason::Parked);
        assert_eq!(said(&outcome), "u a(c1) t(c1) a(c2,c3,c4) t(c2:error,c3)");
        assert_eq!(
            (gone.runs(), old.runs(), new.runs(), kept.runs()),
            (0, 0, 1, 0)
        );
        assert_eq!(outcome.pending[0].call.value(), "c4");
        let text = result_text(&outcome.messages, "c2");
        assert!(text.contains("changer, swap, guard"), "{text}");
    });
}

#[test]
fn b46_tools_are_added_all_or_none_and_the_same_one_again_is_nothing_new() {
    both(async |how| {
        let tide = Fake::named("tide");
        let clashing: Vec<Arc<dyn Tool>> = vec![
            Arc::new(Fake::named("one")),
            Arc::new(Fake::named("tide")),
            Arc::new(Fake::named("two")),
        ];
        let steps = [Step::calls([("c1", "adder", "{}")]), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| {
            agent
                .tool(tide.clone())
                .tool(adding(clashing))
                .show_tool_errors()
        });
        let outcome = rig.run("go").await;
        assert_eq!(said(&outcome), "u a(c1) t(c1:error) a");
        let clash = SetError::Clash {
            name: "tide".into(),
        };
        assert!(result_text(&outcome.messages, "c1").contains(&clash.to_string()));
        assert_eq!(rig.client.asked()[1].tools, ["tide", "adder"]);

        let same: Arc<dyn Tool> = Arc::new(tide);
        let steps = [Step::calls([("c1", "adder", "{}")]), Step::text("done")];
        let rig = Rig::new(how, steps, |agent| {
            agent.tools([Arc::clone(&same)]).tool(adding(vec![same]))
        });
        assert_eq!(said(&rig.run("go").await), "u a(c1) t(c1) a");
        assert_eq!(rig.client.asked()[1].tools, ["tide", "adder"]);
    });
}
