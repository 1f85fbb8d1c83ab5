# the project
PROJECT_NAME="demo"
PLATFORM_DRIVER=codex
MAX_CALLS_PER_HOUR=${MAX_CALLS_PER_HOUR:-100}
export CLAUDE_TIMEOUT_MINUTES=15
ALLOWED_TOOLS="Write,Read,Bash(git *)"
SESSION_CONTINUITY=true
SESSION_EXPIRY_HOURS=24
QUALITY_GATES="make test; make lint"
QUALITY_GATE_MODE=warn

TEST_COMMAND='npm test' # tests
LIST=(a b
c)
X+="${Y-$Z}\"q\""
if [ -n "$A" ]; then
  B=1
fi
f() {
C=`date`
}
CB_COOLDOWN_MINUTES=$(( 5 * 6 ))
CB_AUTO_RESET=false; CB_NO_PROGRESS_THRESHOLD=3
