#include "server/fault_point.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <sstream>
#include <string>

namespace eagle::server {
namespace {

struct Fault {
  std::string name;  // empty: none
  std::atomic<int> left = 0;
};

Fault& fault() {
  static Fault the_one;
  return the_one;
}

}  // namespace

void arm_faults(std::uint32_t worker) {
  const char* const said = std::getenv("EAGLED_FAULT");
  if (said == nullptr) return;
  std::istringstream all(said);
  for (std::string text; std::getline(all, text, ',');) {
    const std::size_t at = text.find('@');
    const std::uint32_t whose =
        at == std::string::npos ? 0 : static_cast<std::uint32_t>(std::atoi(text.c_str()));
    if (whose != worker) continue;
    if (at != std::string::npos) text.erase(0, at + 1);
    const std::size_t colon = text.find(':');
    fault().name = text.substr(0, colon);
    fault().left = colon == std::string::npos ? 1 : std::atoi(text.c_str() + colon + 1);
  }
}

void fault_point(std::string_view name) {
  if (fault().name.empty() || fault().name != name || fault().left.fetch_sub(1) != 1) return;
  ::kill(::getpid(), SIGKILL);
  ::pause();
}

}  // namespace eagle::server
