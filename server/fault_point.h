// Fault points: places where a test can have the worker die, as if killed.
#pragma once

#include <cstdint>
#include <string_view>

namespace eagle::server {

// Makes this process obey EAGLED_FAULT=NAME, or NAME:N for the Nth time that the place is reached; or
// several, with commas in between. They are for the first worker of a keeper, those that begin with "I@" for
// the one after I others. Before any thread starts. The environment is the daemon's, which clients cannot
// set.
void arm_faults(std::uint32_t worker);

// Ends this process by SIGKILL where it is armed to. Else it does nothing.
void fault_point(std::string_view name);

}  // namespace eagle::server
