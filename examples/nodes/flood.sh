#!/bin/sh
# A node for the shell, without any other program: precede emulate SCENARIO --program ./flood.sh
#
# It is wrong on purpose: it passes each message on once and delivers messages as they arrive, so an answer can come
# before its question. Lines have no spaces and a fixed order of keys, so that patterns can take them apart.
me='' neighbours='' seen=' '

say() { # say DEST BODY
    printf '{"src":"%s","dest":"%s","body":%s}\n' "$me" "$1" "$2"
}

number() { # number KEY: the number after "KEY": in $line
    rest=${line##*\"$1\":}
    printf '%s' "${rest%%[!0-9]*}"
}

take() { # take MESSAGE: deliver it and pass it on, if it is new
    case $seen in *" $1 "*) return ;; esac
    seen="$seen$1 "
    say c0 "{\"type\":\"deliver\",\"message\":$1}"
    for neighbour in $neighbours; do
        say "$neighbour" "{\"type\":\"flood\",\"message\":$1}"
    done
}

while IFS= read -r line; do
    src=${line#*\"src\":\"}
    src=${src%%\"*}
    kind=${line#*\"type\":\"}
    kind=${kind%%\"*}
    case $kind in
    init)
        me=${line#*\"node_id\":\"}
        me=${me%%\"*}
        ;;
    topology)
        neighbours=${line##*\[}
        neighbours=$(IFS=',"'; set -f; set -- ${neighbours%%\]*}; echo "$@")
        ;;
    broadcast | flood)
        take "$(number message)"
        ;;
    esac
    case $line in
    *'"msg_id":'*) say "$src" "{\"type\":\"${kind}_ok\",\"in_reply_to\":$(number msg_id)}" ;;
    esac
done
