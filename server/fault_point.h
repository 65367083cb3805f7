// Fault points: places where a test can have the worker die, as if killed.
#pragma once

#include <string_view>

namespace eagle::server {

// Makes this process obey EAGLED_FAULT=NAME, or NAME:N for the Nth time that the place is reached. Before any
// thread starts. The first worker of a keeper does so; its environment is the daemon's, which clients cannot
// set.
void arm_faults();

// Ends this process by SIGKILL where it is armed to. Else it does nothing.
void fault_point(std::string_view name);

}  // namespace eagle::server
