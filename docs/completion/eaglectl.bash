# Completion of eaglectl for bash; made from the program's own definitions.
_eaglectl() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local flags='--help --version --endpoint --json --timeout --tls-ca --tls-cert --tls-key --tls-server-name --token-file' command='' one
  case $before in
    --endpoint) COMPREPLY=(); return ;;
    --timeout) COMPREPLY=(); return ;;
    --tls-ca) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --tls-cert) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --tls-key) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --tls-server-name) COMPREPLY=(); return ;;
    --token-file) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --interval) COMPREPLY=(); return ;;
    --count) COMPREPLY=(); return ;;
    --most) COMPREPLY=(); return ;;
    --launches) COMPREPLY=(); return ;;
    --arch) COMPREPLY=(); return ;;
    -o|--output) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --tenant) COMPREPLY=(); return ;;
    --drain-timeout) COMPREPLY=(); return ;;
    --lines) COMPREPLY=(); return ;;
    --python) COMPREPLY=(); return ;;
    --most-bytes) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --threads) COMPREPLY=(); return ;;
    --rounds) COMPREPLY=(); return ;;
    --most-bytes) COMPREPLY=(); return ;;
    --launches) COMPREPLY=(); return ;;
    --samples) COMPREPLY=(); return ;;
    --device) COMPREPLY=(); return ;;
    --launches) COMPREPLY=(); return ;;
  esac
  local commands='info top sessions health planes graphs show explain graph kernel timeline quarantine pardon drain log log-level metrics support-bundle doctor record replay bench verify'
  for one in "${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
    [[ " $commands " == *" $one "* ]] && { command=$one; break; }
  done
  case $command in
    '') [[ $word == -* ]] || flags=$commands ;;
    info)
      flags+=' --help'
      ;;
    top)
      flags+=' --help --once --interval --count'
      ;;
    sessions)
      flags+=' --help'
      ;;
    health)
      flags+=' --help'
      ;;
    planes)
      flags+=' --help'
      ;;
    graphs)
      flags+=' --help'
      ;;
    show)
      flags+=' --help --help --text --svg --dot --mermaid'
      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -W "$(eaglectl graphs 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$word"); return; }
      ;;
    explain)
      flags+=' --help --most'
      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -W "$(eaglectl graphs 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$word"); return; }
      ;;
    graph)
      flags+=' --help --launches'
      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -W "$(eaglectl graphs 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$word"); return; }
      ;;
    kernel)
      flags+=' --help --roles --ir --asm --llvm --ptx --arch'
      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -W "$(eaglectl graphs 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$word"); return; }
      ;;
    timeline)
      flags+=' --help --output'
      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -W "$(eaglectl graphs 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$word"); return; }
      ;;
    quarantine)
      flags+=' --help'
      ;;
    pardon)
      flags+=' --help --tenant --all'
      ;;
    drain)
      flags+=' --help --drain-timeout'
      ;;
    log)
      flags+=' --help --lines'
      ;;
    log-level)
      flags+=' --help'
      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -W 'trace debug info warn error off' -- "$word"); return; }
      ;;
    metrics)
      flags+=' --help'
      ;;
    support-bundle)
      flags+=' --help'
      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -f -- "$word"); return; }
      ;;
    doctor)
      flags+=' --help --all --no-daemon --python'
      ;;
    record)
      flags+=' --help --with-contents --most-bytes'
      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -f -- "$word"); return; }
      ;;
    replay)
      flags+=' --help --info --verify --in-process --on-host --all --threads --rounds --most-bytes'
      ;;
    bench)
      flags+=' --help --launches --samples'
      ;;
    verify)
      flags+=' --help --device --launches'
      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -W "$(eaglectl graphs 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$word"); return; }
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
}
complete -F _eaglectl eaglectl
