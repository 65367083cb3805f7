# Completion of eagled for bash; made from the program's own definitions.
_eagled() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local flags='--help --version --listen --threads --plane-budget --devices --device-budget --drain-timeout --compile-timeout --cache-dir --log-level --log-format --metrics --web --admins --tls-cert --tls-key --tls-client-ca --tokens --insecure-i-know --config --check-config --check-state --print-config --health --new-token --owner-fd --no-keeper --ready-fd' command='' one
  case $before in
    --listen) COMPREPLY=(); return ;;
    --threads) COMPREPLY=(); return ;;
    --plane-budget) COMPREPLY=(); return ;;
    --devices) COMPREPLY=(); return ;;
    --device-budget) COMPREPLY=(); return ;;
    --drain-timeout) COMPREPLY=(); return ;;
    --compile-timeout) COMPREPLY=(); return ;;
    --cache-dir) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --log-level) mapfile -t COMPREPLY < <(compgen -W 'trace debug info warn error off' -- "$word"); return ;;
    --log-format) mapfile -t COMPREPLY < <(compgen -W 'text json' -- "$word"); return ;;
    --metrics) COMPREPLY=(); return ;;
    --web) COMPREPLY=(); return ;;
    --admins) COMPREPLY=(); return ;;
    --tls-cert) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --tls-key) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --tls-client-ca) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --tokens) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --config) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --health) COMPREPLY=(); return ;;
    --new-token) COMPREPLY=(); return ;;
    --owner-fd) COMPREPLY=(); return ;;
    --ready-fd) COMPREPLY=(); return ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
}
complete -F _eagled eagled
