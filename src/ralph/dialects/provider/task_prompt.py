"""The prompt for following a plan, used if neither the project nor the user has one."""

TASK_PROMPT = """\
The plan for this repository is in {{PLAN_FILE}}. Read it. Its sections contain checkboxes: [ ] is open, [x] is done.

Find the first task section (a heading such as "### Task 3: ...") with open boxes, and do everything in that section,
and only that section. Add tests for new behaviour. Then run the checks that the plan names, or those that this
repository has, and fix what they find. Wait for every command to finish: nothing keeps running after you stop.

When the checks pass, tick the boxes of that section in {{PLAN_FILE}}, and commit your work together with the plan. If
only a person can do what a box asks for (a manual test, a deployment), tick it and note that it was skipped. Do not
start the next section: you will be asked again, with a fresh context.

If the plan has no open boxes left, end with this line:
<<<RALPHEX:ALL_TASKS_DONE>>>

If you cannot finish the section, explain why, and end with this line instead:
<<<RALPHEX:TASK_FAILED>>>
"""
