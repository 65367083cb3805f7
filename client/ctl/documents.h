// eaglectl's own man page and completions.
#pragma once

namespace CLI {
class App;
}

namespace eagle::ctl {

struct Chosen;

// document: for who packages the program; not among the commands that people are shown.
void add_document_commands(CLI::App& app, Chosen& chosen);

}  // namespace eagle::ctl
