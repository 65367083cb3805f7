#include "client/ctl/documents.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/documents.h"
#include "client/ctl/command.h"

namespace eagle::ctl {

void add_document_commands(CLI::App& app, Chosen& chosen) {
  CLI::App* const command =
      app.add_subcommand("document", "Prints the man page or a shell's completion")->group("");
  const auto kind = std::make_shared<std::string>();
  command->add_option("KIND", *kind, "What")
      ->required()
      ->check(CLI::IsMember({"man", "bash", "zsh", "fish"}));
  command->final_callback([&app, &chosen, kind] {
    chosen.command = [&app, kind](const Options&) -> StatusOr<Exit> {
      EAGLE_ASSIGN_OR_RETURN(
          const std::string text,
          cli::document(app,
                        {"eaglectl", 1, "looks at a running eagled, checks this host, acts on both",
                         app.get_footer(), "eagled(8); docs/manual/eaglectl.md in the source tree"},
                        *kind));
      std::cout << text;
      return Exit::well;
    };
  });
}

}  // namespace eagle::ctl
