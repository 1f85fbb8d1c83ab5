# Ends what a killed ralph has left. It reads lines about what is running, and acts when they end: ralph is gone.
#
#   + PID            a short program was started, in a process group of its own
#   - PID            it has ended
#   keeper PID DIR   the run's keeper, and the cgroup of the agent (DIR may be empty)
#   keeper           the keeper has ended
#
# The keeper ends the agent by itself. It is killed if it takes too long, for example because the agent stops it again
# and again. It ends after at most 2 s of grace and 5 s of killing.

running=" "
keeper=
group=
while read -r what pid place; do
    case $what in
    +) running="$running$pid " ;;
    -) running="${running%% "$pid" *} ${running#* "$pid" }" ;;
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

for pid in $running; do
    kill -KILL "-$pid" 2>/dev/null
done
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
