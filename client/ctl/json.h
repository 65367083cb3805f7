// What eaglectl prints for programs (docs/manual/eaglectl.md names every field).
// For the .cpp files of this folder only: it brings a large header.
#pragma once

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

namespace eagle::ctl {

// Fields stay in the order in which they were made.
using Json = nlohmann::ordered_json;

// One line of ASCII, so that a name which turns a terminal's text around is only read, not obeyed. Text that
// is not UTF-8 comes with replacement characters: JSON has no other way.
inline void print_json(const Json& value) {
  std::cout << value.dump(-1, ' ', true, Json::error_handler_t::replace) << '\n';
}

}  // namespace eagle::ctl
