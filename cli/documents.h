// A man page and shell completions, made from the definitions that parse the command line, so that they say
// what the program does. They depend on the definitions alone: not on the machine, the user or the time.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace CLI {
class App;
}

namespace eagle::cli {

// Of the program as a whole; what CLI11 does not know.
struct About {
  std::string name;      // of the program
  int section = 1;       // of the manual
  std::string one_line;  // "looks at a running eagled"
  std::string exit_status;
  std::string see_also;  // "eagled(8)"
};

// `kind`: "man", "bash", "zsh" or "fish". BAD_VALUE names these. What has an empty group is not for people
// and left out.
StatusOr<std::string> document(const CLI::App& app, const About& about, std::string_view kind);

}  // namespace eagle::cli
