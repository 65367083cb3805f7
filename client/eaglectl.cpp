// eaglectl: the operator's tool. Tables for people, `--json` for programs.
//
// Exit status: 0 done, 1 the daemon said no or is not there, 2 the command line is wrong.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "client/discovery.h"
#include "eagle/client/session.h"

namespace {

using eagle::SessionInfo;

using Value = std::variant<std::string, std::int64_t, std::uint64_t, double>;
using Fields = std::vector<std::pair<std::string_view, Value>>;

Fields fields_of(const SessionInfo& info) {
  return {{"endpoint", info.endpoint},
          {"version", info.version},
          {"pid", info.host.pid},
          {"host_name", info.host.host_name},
          {"uptime_s", info.uptime_s},
          {"threads", info.threads},
          {"cpu", info.cpu},
          {"sessions", info.sessions},
          {"planes", info.planes},
          {"plane_bytes", info.plane_bytes},
          {"plane_budget_bytes", info.plane_budget_bytes},
          {"graphs", info.graphs},
          {"launches", info.launches},
          {"kernels_cached", info.kernels_cached}};
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte == '"' || byte == '\\') {
      out += {'\\', character};
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += character;
    }
  }
  return out + '"';
}

std::string plain(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* real = std::get_if<double>(&value)) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.3f", *real);
    return digits;
  }
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return std::to_string(std::get<std::uint64_t>(value));
}

void print_json(const Fields& fields) {
  std::string line = "{";
  for (const auto& [name, value] : fields) {
    if (line.size() > 1) line += ", ";
    line += json_string(name) + ": " +
            (std::holds_alternative<std::string>(value) ? json_string(plain(value)) : plain(value));
  }
  std::cout << line << "}\n";
}

void print_table(const Fields& fields) {
  for (const auto& [name, value] : fields)
    std::printf("%-20s %s\n", std::string(name).c_str(), plain(value).c_str());
}

int info(const std::string& endpoint, bool json) {
  eagle::ConnectOptions options;
  options.client_name = "eaglectl";
  // A tool that looks must not start what it looks at.
  const auto host = eagle::discover(endpoint, options, eagle::Fallback::none);
  const auto found = host.ok() ? eagle::Session(*host).info() : host.status();
  if (!found.ok()) {
    std::cerr << "eaglectl: " << found.status().message() << '\n';
    return 1;
  }
  json ? print_json(fields_of(*found)) : print_table(fields_of(*found));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Looks at a running eagled.", "eaglectl");
  app.set_version_flag("--version", EAGLE_VERSION);
  std::string endpoint;
  bool json = false;
  app.add_option("--endpoint", endpoint,
                 "where the daemon listens, unix:PATH (default: EAGLE_ENDPOINT, then the usual sockets)");
  app.add_flag("--json", json, "one JSON object instead of a table");
  app.require_subcommand(0, 1);
  app.fallthrough();
  const CLI::App* info_command = app.add_subcommand("info", "what the daemon is, holds and does");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return 2;
  }
  if (info_command->parsed()) return info(endpoint, json);
  std::cerr << app.help();
  return 2;
}
