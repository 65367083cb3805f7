// The cases that the hosts on a GPU do not run, each with the reason. Every other one runs there.
#pragma once

#include <string_view>

namespace eagle::conformance {

// Empty: it runs. `suite` and `name` as they are written in TEST_P.
std::string_view why_not_on_gpu(std::string_view suite, std::string_view name);

}  // namespace eagle::conformance
