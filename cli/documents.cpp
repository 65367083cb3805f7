#include "cli/documents.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

namespace eagle::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands(
      [](const CLI::App* one) { return !one->get_name().empty() && !one->get_group().empty(); });
}

// What a word of the command line stands for, where a shell can help with it.
enum class Word { anything, file, graph };

struct Argument {
  std::vector<std::string> flags;    // "--json", "-o"; empty: a place
  std::string place;                 // "GRAPH"
  std::string value;                 // "TEXT"; empty: none
  std::vector<std::string> choices;  // of the value
  std::string help;
  std::string by_default;
  std::string environment;
  bool required = false;
  bool many = false;
  Word word = Word::anything;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// CLI11 keeps the members of a set as text in the type: "TEXT:{a,b,c}".
std::vector<std::string> choices_in(const std::string& type) {
  std::vector<std::string> choices;
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::size_t at = open + 1;
  while (at < close) {
    const std::size_t end = std::min(type.find(',', at), close);
    choices.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return choices;
}

Word word_of(const CLI::Option& option) {
  const std::string name = option.nonpositional() ? "" : option.get_name(true);
  if (name == "GRAPH") return Word::graph;
  const std::string help = option.get_description();
  const bool file = contains(help, " file") || contains(help, "File") || contains(help, "Folder");
  return file && option.get_expected_max() > 0 ? Word::file : Word::anything;
}

Argument argument_of(const CLI::Option& option) {
  Argument argument;
  for (const std::string& name : option.get_snames()) argument.flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) argument.flags.push_back("--" + name);
  argument.place = option.nonpositional() ? "" : option.get_name(true);
  argument.help = option.get_description();
  argument.environment = option.get_envname();
  argument.required = option.get_required();
  argument.word = word_of(option);
  if (option.get_type_size() > 0 && option.get_expected_max() > 0) {
    const std::string type = option.get_type_name();
    argument.choices = choices_in(type);
    argument.value = argument.choices.empty() ? type.substr(0, type.find(':')) : "WORD";
    argument.by_default = option.get_default_str();
    argument.many = option.get_expected_max() > 1;
  }
  return argument;
}

// Of a command, those of its groups among them.
std::vector<Argument> arguments_of(const CLI::App& app) {
  std::vector<Argument> all;
  for (const CLI::Option* const option : app.get_options()) {
    if (!option->get_group().empty()) all.push_back(argument_of(*option));
  }
  for (const CLI::App* const group :
       app.get_subcommands([](const CLI::App* one) { return one->get_name().empty(); })) {
    for (Argument& argument : arguments_of(*group)) all.push_back(std::move(argument));
  }
  return all;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(between)) + word;
  return text;
}

// ---- the man page

// Text as roff prints it: a hyphen that can be copied, no line that begins as a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

std::string sentence(std::string text) {
  if (!text.empty() && !text.ends_with('.')) text += '.';
  return text;
}

std::string man_of(const Argument& argument) {
  std::string heading;
  for (const std::string& flag : argument.flags)
    heading += (heading.empty() ? "" : ", ") + ("\\fB" + roff(flag) + "\\fR");
  if (!argument.place.empty()) heading += "\\fI" + roff(argument.place) + "\\fR";
  if (!argument.value.empty() && argument.place.empty()) heading += " \\fI" + roff(argument.value) + "\\fR";
  std::string text = ".TP\n" + heading + "\n" + roff(sentence(argument.help));
  if (!argument.choices.empty()) text += roff(" One of " + joined(argument.choices, ", ") + ".");
  if (!argument.by_default.empty()) text += roff(" Default: " + argument.by_default + ".");
  if (!argument.environment.empty()) text += roff(" Environment: " + argument.environment + ".");
  return text + "\n";
}

std::string usage_of(const std::vector<Argument>& arguments) {
  std::string text;
  for (const Argument& argument : arguments) {
    if (argument.place.empty()) continue;
    const std::string place = "\\fI" + roff(argument.place) + "\\fR" + (argument.many ? " ..." : "");
    text += " " + (argument.required ? place : "[" + place + "]");
  }
  return text;
}

std::string man(const CLI::App& app, const About& about) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  std::string upper = about.name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string text = ".\\\" Made from the program's own definitions (docs/tools/cli.py).\n.TH " + upper +
                     " " + std::to_string(about.section) +
                     " \"\" \"eagle " EAGLE_VERSION "\" \"eagle manual\"\n";
  text += ".SH NAME\n" + about.name + " \\- " + roff(about.one_line) + "\n";
  text += ".SH SYNOPSIS\n\\fB" + about.name + "\\fR [\\fIOPTION\\fR]..." +
          (commands.empty() ? "" : " \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...") + "\n";
  text += ".SH DESCRIPTION\n" + roff(sentence(app.get_description())) + "\n";
  if (!commands.empty()) text += ".SH COMMANDS\n";
  for (const CLI::App* const command : commands) {
    const std::vector<Argument> arguments = arguments_of(*command);
    text += ".SS " + roff(command->get_name()) + usage_of(arguments) + "\n" +
            roff(sentence(command->get_description())) + "\n";
    for (const Argument& argument : arguments) {
      if (argument.flags != std::vector<std::string>{"-h", "--help"}) text += man_of(argument);
    }
  }
  text += ".SH OPTIONS\n";
  for (const Argument& argument : arguments_of(app)) text += man_of(argument);
  text += ".SH EXIT STATUS\n" + roff(about.exit_status) + "\n.SH SEE ALSO\n" + roff(about.see_also) + "\n";
  return text;
}

// ---- completions

std::vector<std::string> flags_of(const std::vector<Argument>& arguments) {
  std::vector<std::string> flags;
  for (const Argument& argument : arguments) {
    if (!argument.flags.empty()) flags.push_back(argument.flags.back());
  }
  return flags;
}

// The ids and names of graphs, asked of the daemon that the line is about.
std::string graph_words(const std::string& program) {
  return "$(" + program + " graphs 2>/dev/null | awk 'NR > 1 { print $1 }')";
}

std::string bash_words(const Argument& argument, const std::string& program) {
  if (!argument.choices.empty()) return "compgen -W '" + joined(argument.choices, " ") + "' -- \"$word\"";
  if (argument.word == Word::file) return "compgen -f -- \"$word\"";
  if (argument.word == Word::graph) return "compgen -W \"" + graph_words(program) + "\" -- \"$word\"";
  return {};
}

// What comes after an option that takes a value.
std::string bash_values(const std::vector<Argument>& arguments, const std::string& program) {
  std::string text;
  for (const Argument& argument : arguments) {
    if (argument.flags.empty() || argument.value.empty()) continue;
    const std::string words = bash_words(argument, program);
    text += "    " + joined(argument.flags, "|") + ") " +
            (words.empty() ? "COMPREPLY=()" : "mapfile -t COMPREPLY < <(" + words + ")") + "; return ;;\n";
  }
  return text;
}

std::string bash(const CLI::App& app, const About& about) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  const std::vector<Argument> common = arguments_of(app);
  std::string values = bash_values(common, about.name);
  std::string cases;
  std::vector<std::string> names;
  for (const CLI::App* const command : commands) {
    names.push_back(command->get_name());
    const std::vector<Argument> own = arguments_of(*command);
    values += bash_values(own, about.name);
    std::string places;
    for (const Argument& argument : own) {
      if (!argument.place.empty() && places.empty()) places = bash_words(argument, about.name);
    }
    cases += "    " + command->get_name() + ")\n      flags+=' " + joined(flags_of(own), " ") + "'\n" +
             (places.empty()
                  ? ""
                  : "      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(" + places + "); return; }\n") +
             "      ;;\n";
  }
  std::string text = "# Completion of " + about.name +
                     " for bash; made from the program's own definitions.\n_" + about.name +
                     "() {\n  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
                     "  local flags='" +
                     joined(flags_of(common), " ") + "' command='' one\n";
  text += "  case $before in\n" + values + "  esac\n";
  if (!commands.empty()) {
    text += "  local commands='" + joined(names, " ") +
            "'\n"
            "  for one in \"${COMP_WORDS[@]:1:COMP_CWORD - 1}\"; do\n"
            "    [[ \" $commands \" == *\" $one \"* ]] && { command=$one; break; }\n  done\n"
            "  case $command in\n    '') [[ $word == -* ]] || flags=$commands ;;\n" +
            cases + "  esac\n";
  }
  return text + "  mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$word\")\n}\ncomplete -F _" +
         about.name + " " + about.name + "\n";
}

// Single quotes of a shell, and what _arguments would read as its own.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string zsh_action(const Argument& argument) {
  if (!argument.choices.empty()) return "(" + joined(argument.choices, " ") + ")";
  if (argument.word == Word::file) return "_files";
  if (argument.word == Word::graph) return "_eagle_graphs";
  return " ";
}

std::string zsh_arguments(const std::vector<Argument>& arguments, const std::string& indent) {
  std::string text;
  for (const Argument& argument : arguments) {
    for (const std::string& flag : argument.flags) {
      text += indent + "'" + flag +
              (argument.value.empty()   ? ""
               : flag.starts_with("--") ? "="
                                        : "+") +
              "[" + zsh_text(argument.help) + "]" +
              (argument.value.empty() ? "" : ":" + zsh_text(argument.value) + ":" + zsh_action(argument)) +
              "' \\\n";
    }
    if (argument.place.empty()) continue;
    text += indent + "'" + (argument.many ? "*" : "") + ":" + (argument.required ? "" : ":") +
            zsh_text(argument.place) + ":" + zsh_action(argument) + "' \\\n";
  }
  return text;
}

std::string zsh(const CLI::App& app, const About& about) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  std::string text = "#compdef " + about.name + "\n# Completion of " + about.name +
                     " for zsh; made from the program's own definitions.\n";
  if (!commands.empty())
    text += "_eagle_graphs() {\n  local -a graphs\n  graphs=(${(f)\"" + graph_words(about.name) +
            "\"})\n"
            "  compadd -a graphs\n}\n";
  text += "_" + about.name + "() {\n  local -a common\n  common=(\n";
  for (const std::string& line : {zsh_arguments(arguments_of(app), "    ")}) {
    std::string plain = line;
    for (std::size_t at = plain.find(" \\\n"); at != std::string::npos; at = plain.find(" \\\n"))
      plain.replace(at, 3, "\n");
    text += plain;
  }
  text += "  )\n";
  if (commands.empty()) return text + "  _arguments $common\n}\n_" + about.name + " \"$@\"\n";
  text +=
      "  local context state line\n  typeset -A opt_args\n"
      "  _arguments -C $common '1: :->command' '*:: :->arguments' && return\n  case $state in\n    command)\n"
      "      local -a commands\n      commands=(\n";
  for (const CLI::App* const command : commands)
    text += "        '" + zsh_text(command->get_name()) + ":" + zsh_text(command->get_description()) + "'\n";
  text += "      )\n      _describe command commands ;;\n    arguments)\n      case $words[1] in\n";
  for (const CLI::App* const command : commands)
    text += "        " + command->get_name() + ") _arguments \\\n" +
            zsh_arguments(arguments_of(*command), "          ") + "          $common ;;\n";
  return text + "      esac ;;\n  esac\n}\n_" + about.name + " \"$@\"\n";
}

std::string fish_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "\\'" : c == '\\' ? "\\\\" : std::string(1, c);
  return out + "'";
}

std::string fish_of(const std::vector<Argument>& arguments, const std::string& program,
                    const std::string& when) {
  std::string text;
  for (const Argument& argument : arguments) {
    std::string line = "complete -c " + program + when;
    for (const std::string& flag : argument.flags)
      line += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
    std::string words;
    if (!argument.choices.empty()) words = " -xa " + fish_text(joined(argument.choices, " "));
    if (argument.word == Word::graph)
      words = " -xa '(" + program + " graphs 2>/dev/null | awk \"NR > 1 { print \\$1 }\")'";
    if (words.empty() && !argument.value.empty()) words = argument.word == Word::file ? " -rF" : " -x";
    if (argument.flags.empty() && words == " -x") continue;  // a place that a shell cannot help with
    text += line + words + " -d " + fish_text(argument.help) + "\n";
  }
  return text;
}

std::string fish(const CLI::App& app, const About& about) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  std::string text = "# Completion of " + about.name +
                     " for fish; made from the program's own definitions.\ncomplete -c " + about.name +
                     " -f\n" + fish_of(arguments_of(app), about.name, "");
  for (const CLI::App* const command : commands) {
    const std::string& name = command->get_name();
    text += "complete -c " + about.name + " -n __fish_use_subcommand -a " + name + " -d " +
            fish_text(command->get_description()) + "\n" +
            fish_of(arguments_of(*command), about.name, " -n '__fish_seen_subcommand_from " + name + "'");
  }
  return text;
}

}  // namespace

StatusOr<std::string> document(const CLI::App& app, const About& about, std::string_view kind) {
  if (kind == "man") return man(app, about);
  if (kind == "bash") return bash(app, about);
  if (kind == "zsh") return zsh(app, about);
  if (kind == "fish") return fish(app, about);
  return Status(Reason::bad_value,
                "there is no document '" + std::string(kind) + "'; expected man, bash, zsh or fish");
}

}  // namespace eagle::cli
