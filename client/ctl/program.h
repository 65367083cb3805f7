// The command line of eaglectl, whole: the program and its documents are made from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/ctl/command.h"

namespace eagle::ctl {

// Puts all options and commands into `app`. What is parsed then is in `options` and `chosen`, which outlive
// it.
void describe(CLI::App& app, Options& options, Chosen& chosen);

// What is said of a word of the command line that nobody knows: the nearest command or option. Empty where
// that is not what is wrong.
std::string unknown_word(const CLI::App& app, const std::vector<std::string>& words);

// Runs the program; its exit status.
int run(int argc, char** argv);

}  // namespace eagle::ctl
