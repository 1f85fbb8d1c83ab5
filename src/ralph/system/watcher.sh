# Ends what a killed ralph has left. It reads lines about what is running, and acts when they end: ralph is gone.
#
#   +                a short program is about to start; like the agent, it has `_RALPH_WATCHED=$1` in its environment
#   -                it has ended
#   keeper PID DIR   the run's keeper, and the cgroup of the agent (DIR may be empty)
#   keeper           the keeper has ended
#
# The keeper ends the agent by itself, after at most 2 s of grace and 5 s of killing. It is killed if it takes longer,
# for example because the agent stops it again and again.

running=0
keeper=
group=
while read -r what pid place; do
    case $what in
    +) running=$((running + 1)) ;;
    -) running=$((running - 1)) ;;
    keeper)
        keeper=$pid
        group=$place
        ;;
    esac
done

ended() {
    kill -0 "$1" 2>/dev/null || return 0
    [ -r "/proc/$1/stat" ] && read -r _ _ state _ <"/proc/$1/stat" && [ "$state" = Z ]
}

kill_marked() {
    tries=0
    while [ $tries -lt 20 ]; do
        found=$(grep -ls "_RALPH_WATCHED=$1" /proc/[0-9]*/environ)
        [ -n "$found" ] || break
        for file in $found; do
            pid=${file#/proc/}
            kill -KILL "${pid%/environ}" 2>/dev/null
        done
        tries=$((tries + 1))
    done
}

[ -n "$keeper" ] || [ $running -le 0 ] || kill_marked "$1"
if [ -n "$keeper" ]; then
    tries=0
    until ended "$keeper" || [ $tries -ge 100 ]; do
        kill -CONT "$keeper" 2>/dev/null
        sleep 0.1
        tries=$((tries + 1))
    done
    ended "$keeper" || kill -KILL "$keeper" 2>/dev/null
fi
if [ -n "$group" ] && [ -d "$group" ]; then
    echo 1 2>/dev/null >"$group/cgroup.kill"
    tries=0
    until rmdir "$group" 2>/dev/null || [ ! -d "$group" ] || [ $tries -ge 20 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
fi
[ -z "$keeper" ] || kill_marked "$1"  # what was not in a cgroup
