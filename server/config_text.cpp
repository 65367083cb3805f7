// The configuration as text, and two of them compared.
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/options.h"

namespace eagle::server {
namespace {

// Lines of a file, each with where its setting comes from.
class Lines {
public:
  explicit Lines(const ProgramOptions& options) : options_(options) {}

  template <typename Value>
  void add(const std::string& prefix, const std::string& key, Value value) {
    entries_.push_back({prefix + key, line_of(key, std::move(value))});
  }
  // Part of what has its origin in a header.
  template <typename Value>
  void add_part(const std::string& key, Value value) {
    entries_.push_back({{}, line_of(key, std::move(value))});
  }
  void add(const std::string& prefix, const std::string& key, const std::vector<std::string>& texts) {
    toml::array array;
    for (const std::string& text : texts) array.push_back(text);
    add(prefix, key, std::move(array));
  }
  void header(const std::string& name, const std::string& key = {}) {
    entries_.push_back({key, "\n" + name});
  }

  [[nodiscard]] std::string text() const {
    std::string text;
    for (const auto& [key, line] : entries_) {
      text += line;
      if (!key.empty()) text += "  # " + origin_of(key);
      text += '\n';
    }
    return text;
  }
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& entries() const { return entries_; }

private:
  template <typename Value>
  static std::string line_of(const std::string& key, Value value) {
    std::ostringstream line;
    line << toml::table{{key, std::move(value)}};
    return line.str();
  }
  [[nodiscard]] std::string origin_of(const std::string& key) const {
    const auto found = options_.origins.find(key);
    return found == options_.origins.end() ? "default" : found->second;
  }

  const ProgramOptions& options_;
  std::vector<std::pair<std::string, std::string>> entries_;  // key (empty: of no setting of its own), line
};

void add_tenant(Lines& lines, const std::string& principal, const TenantPolicy& policy) {
  const auto quota = [&](const char* key, Held kind) {
    lines.add_part(key, static_cast<std::int64_t>(policy.quotas[static_cast<std::size_t>(kind)]));
  };
  lines.header("[[tenant]]", "tenant");
  lines.add_part("principal", principal);
  lines.add_part("weight", policy.weight);
  lines.add_part("priority", std::int64_t{policy.priority});
  quota("sessions", Held::sessions);
  quota("plane_bytes", Held::plane_bytes);
  quota("graphs", Held::graphs);
  quota("jobs", Held::jobs);
  quota("planes", Held::planes);
  quota("gpu_bytes", Held::gpu_bytes);
  lines.add_part("compile_seconds", policy.compile_seconds);
  lines.add_part("device_share", policy.device_share);
}

Lines lines_of(const ProgramOptions& options) {
  Lines lines(options);
  lines.add("", "threads", std::int64_t{options.threads});
  lines.add("", "plane_budget", static_cast<std::int64_t>(options.plane_budget_bytes));
  lines.add("", "devices", options.devices);
  lines.add("", "device_budget", static_cast<std::int64_t>(options.device_budget_bytes));
  lines.add("", "drain_timeout", std::int64_t{options.drain_timeout_s});
  lines.add("", "compile_timeout", std::int64_t{options.compile_timeout_s});
  lines.add("", "cache_dir", options.cache_directory);
  lines.add("", "log_level", options.log_level);
  lines.add("", "log_format", options.log_format);
  lines.add("", "metrics", options.metrics);
  lines.add("", "web", options.web);
  lines.add("", "admins", admins_of(options));
  lines.add("", "insecure_i_know", options.insecure_i_know);
  for (const ListenOptions& listener : options.listen) {
    lines.header("[[listen]]", "listen");
    lines.add_part("endpoint", listener.endpoint);
    if (!listener.identity.empty()) lines.add_part("identity", listener.identity);
  }
  if (options.tls.used()) {
    lines.header("[tls]");
    lines.add("tls.", "certificate", options.tls.certificate);
    lines.add("tls.", "key", options.tls.key);
    if (!options.tls.client_ca.empty()) lines.add("tls.", "client_ca", options.tls.client_ca);
  }
  if (!options.tokens.empty()) {
    lines.header("[tokens]");
    lines.add("tokens.", "file", options.tokens);
  }
  lines.header("[limits]");
  for_each_limit(options.limits, [&](const char* key, const auto& field, std::int64_t, std::int64_t) {
    lines.add("limits.", key, static_cast<std::int64_t>(static_cast<std::uint64_t>(field)));
  });
  for (const auto& [principal, policy] : options.tenants) add_tenant(lines, principal, policy);
  return lines;
}

// Whether a running daemon takes this setting over from a file that has changed.
bool follows(const std::string& key, const Limits& limits) {
  if (key == "listen" || key == "tenant") return true;  // one is compared whole, the others are followed
  if (key == "log_level" || key == "admins" || key == "drain_timeout" || key == "tokens.file") return true;
  bool bound = false;
  for_each_limit(limits, [&](const char* name, const auto& field, std::int64_t, std::int64_t) {
    if (key == std::string("limits.") + name)
      bound = std::is_same_v<std::decay_t<decltype(field)>, Bound<std::size_t>>;
  });
  return bound;
}

}  // namespace

std::string to_toml(const ProgramOptions& options) { return lines_of(options).text(); }

std::vector<std::string> need_a_restart(const ProgramOptions& now, const ProgramOptions& wanted) {
  const auto values = [](const ProgramOptions& options) {
    const Lines lines = lines_of(options);
    return std::map<std::string, std::string>(lines.entries().begin(), lines.entries().end());
  };
  const auto had = values(now);
  const auto wants = values(wanted);
  std::vector<std::string> keys;
  for (const auto* side : {&had, &wants}) {
    for (const auto& [key, line] : *side) {
      const auto other = (side == &had ? wants : had).find(key);
      const bool same = other != (side == &had ? wants : had).end() && other->second == line;
      const bool told = std::find(keys.begin(), keys.end(), key) != keys.end();
      if (!key.empty() && !same && !told && !follows(key, now.limits)) keys.push_back(key);
    }
  }
  if (now.listen != wanted.listen) keys.emplace_back("listen");
  return keys;
}

std::vector<std::string> admins_of(const ProgramOptions& options) {
  if (!options.admins.empty()) return options.admins;
  std::vector<std::string> own = {"uid:0"};
  if (::geteuid() != 0) own.push_back("uid:" + std::to_string(::geteuid()));
  return own;
}

}  // namespace eagle::server
