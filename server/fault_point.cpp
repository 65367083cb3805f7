#include "server/fault_point.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
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

void arm_faults() {
  const char* const said = std::getenv("EAGLED_FAULT");
  if (said == nullptr) return;
  const std::string text(said);
  const std::size_t colon = text.find(':');
  fault().name = text.substr(0, colon);
  fault().left = colon == std::string::npos ? 1 : std::atoi(text.c_str() + colon + 1);
}

void fault_point(std::string_view name) {
  if (fault().name.empty() || fault().name != name || fault().left.fetch_sub(1) != 1) return;
  ::kill(::getpid(), SIGKILL);
  ::pause();
}

}  // namespace eagle::server
