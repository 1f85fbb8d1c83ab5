#!/bin/sh
# Runs a command on a machine where some programs are not installed: without.sh "PROGRAM..." COMMAND...
# A PATH without them would not be enough: a login shell resets it. So they are deleted from an overlay of their folders,
# in a mount namespace that only the command sees.
set -eu
hidden=$1
shift
scratch=$(mkdir -p .build/without && cd .build/without && pwd)

# $1 is the programs, $2 a folder to mount on; then comes the command.
delete='
    set -eu
    programs=$1 scratch=$2
    shift 2
    mount -t tmpfs tmpfs "$scratch"
    for program in $programs; do
        while found=$(command -v "$program"); do
            folder=$(readlink -f "${found%/*}")
            if [ ! -d "$scratch$folder" ]; then
                mkdir -p "$scratch$folder/upper" "$scratch$folder/work"
                mount -t overlay -o "lowerdir=$folder,upperdir=$scratch$folder/upper,workdir=$scratch$folder/work" overlay "$folder"
            fi
            rm "$folder/$program"
        done
    done
    exec "$@"
'
in_namespace() { unshare -m -- sh -c "$delete" sh "$hidden" "$scratch" "$@"; }

if in_namespace true 2>/dev/null; then
    in_namespace "$@"
    exit
fi

# Without the right to mount: a PATH of folders with links to everything else.
path=
IFS=:
for folder in $PATH; do
    case $folder in /*) ;; *) continue ;; esac
    [ -d "$folder" ] || continue
    links=$scratch/links$folder
    rm -rf "$links"
    mkdir -p "$links"
    find "$folder/" -maxdepth 1 ! -type d -exec ln -st "$links" {} +
    path=$path${path:+:}$links
done
unset IFS
for program in $hidden; do
    find "$scratch/links" -name "$program" -delete
done
echo "without.sh: nothing may be mounted here; login shells and absolute paths still reach: $hidden" >&2
PATH=$path "$@"
