"""What an agent is told where a plan is to be followed and the convention's own prompt is not there."""

TASK_PROMPT = """\
The plan for this repository is in {{PLAN_FILE}}. Read it. It has sections with boxes: [ ] is open, [x] is done.

Take the first task section (a heading such as "### Task 3: ...") that has open boxes, and do that one section only:
everything under it, with tests where it adds behaviour. Then run the checks that the plan names, or those that this
repository has, and repair what they find. Wait for every command to end; nothing goes on after you have stopped.

When they pass, tick the boxes of that section in {{PLAN_FILE}} and commit the work together with the plan. A box that
only a person can tick (a manual test, a deployment) gets [x] and a note that it was left out. Do not begin the next
section: you will be asked again, with a fresh context.

If no box is open any more in the whole plan, end with this line:
<<<RALPHEX:ALL_TASKS_DONE>>>

If the section cannot be finished, say why, and end with this line instead:
<<<RALPHEX:TASK_FAILED>>>
"""
