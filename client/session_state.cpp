#include "client/session_state.h"

namespace eagle {

std::uint64_t next_session_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

Status SessionState::check(std::string_view operation) const {
  if (!forked() && !closed()) return {};
  const std::string where(operation);
  if (forked()) {
    return {Reason::session_forked, where + ": " + name() + " was opened in process " +
                                        std::to_string(owner_) + ", and this is its forked child " +
                                        std::to_string(this_process()) + "; open a session of its own there"};
  }
  return {Reason::session_closed, where + ": " + name() + " is closed; open another session"};
}

}  // namespace eagle
