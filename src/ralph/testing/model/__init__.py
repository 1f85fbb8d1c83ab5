"""A scripted model behind the APIs that agents use, for running any agent without a key.

    with FakeModel("success") as model:
        ...  # start an agent that asks model.url
        assert model.requests[0].prompt == "Do the work."

Or `python -m ralph.testing.model --scenario success`.
"""

from ralph.testing.model.fake import FakeModel
from ralph.testing.model.log import Request
from ralph.testing.model.scenarios import SCENARIOS
from ralph.testing.model.script import Cut, Failure, Hang, Refuse, Scenario, Shell, Turn, When, Write

__all__ = [
    "SCENARIOS",
    "Cut",
    "Failure",
    "FakeModel",
    "Hang",
    "Refuse",
    "Request",
    "Scenario",
    "Shell",
    "Turn",
    "When",
    "Write",
]
