#include "engine/run/team_thread.h"

#include <pthread.h>

#include <atomic>

namespace eagle::run {
namespace {

std::atomic<bool> forked = false;
// Before the first fork that matters, because it is before main.
[[maybe_unused]] const int registered = ::pthread_atfork(nullptr, nullptr, [] { forked = true; });

}  // namespace

bool in_forked_child() { return forked; }

}  // namespace eagle::run
