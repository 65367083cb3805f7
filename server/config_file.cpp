#include "server/config_file.h"

#include <toml++/toml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include "engine/base/nearest.h"
#include "server/access.h"
#include "server/published.h"

namespace eagle::server {
namespace {

constexpr std::uint64_t most_size = std::uint64_t{1} << 60;

// "512M" in bytes, as the flags take it.
std::optional<std::uint64_t> size_of(std::string text) {
  std::uint64_t value = 0;
  try {
    if (!CLI::AsSizeValue(false)(text).empty() || !CLI::detail::lexical_cast(text, value)) return {};
  } catch (const CLI::Error&) {
    return {};
  }
  return value;
}

// One table of the file, read key by key. The first mistake stays.
class Reader {
public:
  Reader(const toml::table& table, std::string where, const std::string& file)
      : table_(table), where_(std::move(where)), file_(file) {}

  // "file 'eagled.toml' line 3"
  [[nodiscard]] std::string place_of(std::string_view key) const {
    return "file '" + file_ + "' line " + std::to_string(table_.get(key)->source().begin.line);
  }

  template <typename Value>
  std::optional<Value> take(std::string_view key, const char* expected) {
    known_.emplace_back(key);
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return {};
    const auto value = node->value_exact<Value>();
    if (!value) refuse(*node, key, "expected " + std::string(expected));
    return value;
  }

  std::optional<std::int64_t> number(std::string_view key, std::int64_t least, std::int64_t most) {
    const std::string range = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    const auto value = take<std::int64_t>(key, range.c_str());
    if (value && (*value < least || *value > most)) {
      refuse(*table_.get(key), key, "expected " + range + ", found " + std::to_string(*value));
      return {};
    }
    return value;
  }

  // Whole or not, from above `least` (or `least` itself, where `or_least`) to `most`.
  std::optional<double> real(std::string_view key, double least, bool or_least, double most) {
    known_.emplace_back(key);
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return {};
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !(*value > least || (or_least && *value == least)) || !(*value <= most)) {
      refuse(*node, key,
             "expected a number " + std::string(or_least ? "from " : "above ") + std::to_string(least) +
                 " to " + std::to_string(most));
      return {};
    }
    return value;
  }

  // A number of bytes, or a text such as "512M".
  std::optional<std::uint64_t> bytes(std::string_view key) {
    known_.emplace_back(key);
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return {};
    std::optional<std::uint64_t> value;
    if (const auto number = node->value_exact<std::int64_t>(); number && *number >= 0) {
      value = static_cast<std::uint64_t>(*number);
    } else if (const auto text = node->value_exact<std::string>()) {
      value = size_of(*text);
    }
    if (!value || *value > most_size) {
      refuse(*node, key, "expected a number of bytes up to 2^60, or a text such as \"512M\" or \"64G\"");
      return {};
    }
    return value;
  }

  std::optional<std::string> choice(std::string_view key, const std::vector<std::string>& choices) {
    std::string expected = "one of";
    for (const std::string& one : choices) expected += " \"" + one + "\"";
    auto value = take<std::string>(key, expected.c_str());
    if (value && std::find(choices.begin(), choices.end(), *value) == choices.end()) {
      refuse(*table_.get(key), key, "expected " + expected + ", found \"" + *value + "\"");
      return {};
    }
    return value;
  }

  std::optional<std::vector<std::string>> texts(std::string_view key, const char* expected) {
    known_.emplace_back(key);
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return {};
    const toml::array* const array = node->as_array();
    std::vector<std::string> found;
    if (array != nullptr) {
      for (const toml::node& one : *array) found.push_back(one.value_exact<std::string>().value_or(""));
    }
    if (array != nullptr && std::find(found.begin(), found.end(), "") == found.end()) return found;
    refuse(*node, key, std::string("expected ") + expected);
    return {};
  }

  const toml::table* table(std::string_view key) {
    known_.emplace_back(key);
    const toml::node* const node = table_.get(key);
    if (node != nullptr && !node->is_table())
      refuse(*node, key, "expected a table, [" + std::string(key) + "]");
    return node == nullptr ? nullptr : node->as_table();
  }

  // The tables of [[key]].
  std::vector<const toml::table*> tables(std::string_view key) {
    known_.emplace_back(key);
    std::vector<const toml::table*> found;
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return found;
    const toml::array* const array = node->as_array();
    if (array == nullptr || !array->is_homogeneous(toml::node_type::table)) {
      refuse(*node, key, "expected tables, [[" + std::string(key) + "]]");
      return found;
    }
    for (const toml::node& one : *array) found.push_back(one.as_table());
    return found;
  }

  void refuse(const toml::node& node, std::string_view key, const std::string& what) {
    if (!status_.ok()) return;
    status_ = {Reason::bad_value, "'" + file_ + "' line " + std::to_string(node.source().begin.line) + ": " +
                                      where_ + std::string(key) + ": " + what};
  }

  // After every key has been asked for: a key that nobody asked for is a mistake.
  Status finish() {
    for (const auto& [key, node] : table_) {
      if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
      refuse(node, key.str(), "there is no such key; the nearest is '" + *nearest(key.str(), known_) + "'");
    }
    return status_;
  }
  [[nodiscard]] const Status& status() const { return status_; }
  // Of a key that is there.
  Status mistake(std::string_view key, const std::string& what) {
    refuse(*table_.get(key), key, what);
    return status_;
  }

private:
  const toml::table& table_;
  const std::string where_;
  const std::string& file_;
  std::vector<std::string> known_;
  Status status_;
};

template <typename Value, typename Found>
void keep(Value& value, std::optional<Found> found) {
  if (found) value = static_cast<Value>(*std::move(found));
}

// Settings that flags and the environment may have set already, which win.
class Layer {
public:
  Layer(const std::function<bool(const std::string&)>& given, ProgramOptions& options)
      : given_(given), options_(options) {}

  // `key`: of the reader's table; `prefix`: that table's name and a dot, at the top nothing.
  template <typename Value, typename Found>
  void keep(const Reader& reader, const std::string& prefix, const std::string& key, const char* flag,
            Value& value, std::optional<Found> found) {
    if (!found || given_(flag)) return;
    value = static_cast<Value>(*std::move(found));
    options_.origins[prefix + key] = reader.place_of(key);
  }
  [[nodiscard]] bool given(const char* flag) const { return given_(flag); }

private:
  const std::function<bool(const std::string&)>& given_;
  ProgramOptions& options_;
};

Status read_listeners(Reader& top, const std::string& name, bool given, ProgramOptions& options) {
  std::vector<ListenOptions> listen;
  int number = 0;
  for (const toml::table* table : top.tables("listen")) {
    Reader reader(*table, "[[listen]] " + std::to_string(++number) + ": ", name);
    ListenOptions one;
    const auto endpoint = reader.take<std::string>("endpoint", "a text, \"unix:PATH\" or \"dns:HOST:PORT\"");
    keep(one.endpoint, endpoint);
    keep(one.identity, reader.choice("identity", {"uid", "certificate", "token", "anonymous"}));
    EAGLE_RETURN_IF_ERROR(reader.finish());
    if (!endpoint)
      reader.refuse(*table, "endpoint", "it is missing; write \"unix:PATH\" or \"dns:HOST:PORT\"");
    EAGLE_RETURN_IF_ERROR(reader.status());
    listen.push_back(std::move(one));
  }
  if (given || listen.empty()) return {};
  options.listen = std::move(listen);
  options.origins["listen"] = top.place_of("listen");
  return {};
}

Status read_tenants(Reader& top, const std::string& name, ProgramOptions& options) {
  constexpr std::int64_t most = INT64_MAX;
  int number = 0;
  for (const toml::table* table : top.tables("tenant")) {
    Reader reader(*table, "[[tenant]] " + std::to_string(++number) + ": ", name);
    const char* const expected =
        "\"uid:N\", \"token:NAME\", \"certificate:NAME\", or \"*\" for everybody else";
    const auto principal = reader.take<std::string>("principal", expected);
    TenantPolicy policy;
    keep(policy.weight, reader.real("weight", 0, false, 1e6));
    keep(policy.priority, reader.number("priority", -1000, 1000));
    auto& quotas = policy.quotas;
    keep(quotas[static_cast<std::size_t>(Held::sessions)], reader.number("sessions", 0, most));
    keep(quotas[static_cast<std::size_t>(Held::plane_bytes)], reader.bytes("plane_bytes"));
    keep(quotas[static_cast<std::size_t>(Held::graphs)], reader.number("graphs", 0, most));
    keep(quotas[static_cast<std::size_t>(Held::jobs)], reader.number("jobs", 0, most));
    keep(quotas[static_cast<std::size_t>(Held::planes)], reader.number("planes", 0, most));
    keep(quotas[static_cast<std::size_t>(Held::gpu_bytes)], reader.bytes("gpu_bytes"));
    keep(policy.compile_seconds, reader.real("compile_seconds", 0, true, 60));
    keep(policy.device_share, reader.real("device_share", 0, true, 1));
    EAGLE_RETURN_IF_ERROR(reader.finish());
    if (!principal || !Published::is_principal(*principal)) {
      reader.refuse(*table, "principal", std::string("expected ") + expected);
    } else if (!options.tenants.emplace(*principal, policy).second) {
      reader.refuse(*table, "principal", "'" + *principal + "' has a [[tenant]] already");
    }
    EAGLE_RETURN_IF_ERROR(reader.status());
    options.origins["tenant"] = top.place_of("tenant");
  }
  return {};
}

Status read_admins(Reader& top, bool given, ProgramOptions& options) {
  const auto admins = top.texts("admins", "principals, as [\"uid:0\", \"token:ops\"]");
  EAGLE_RETURN_IF_ERROR(top.status());
  if (!admins) return {};
  for (const std::string& one : *admins) {
    if (one != "*" && Published::is_principal(one)) continue;
    return top.mistake("admins",
                       "expected \"uid:N\", \"token:NAME\" or \"certificate:NAME\", found \"" + one + "\"");
  }
  if (given) return {};
  options.admins = *admins;
  options.origins["admins"] = top.place_of("admins");
  return {};
}

Status read_limits(Reader& top, const std::string& name, ProgramOptions& options) {
  const toml::table* const table = top.table("limits");
  if (table == nullptr) return {};
  Reader reader(*table, "[limits] ", name);
  for_each_limit(options.limits, [&](const char* key, auto& field, std::int64_t least, std::int64_t most) {
    const auto found = reader.number(key, least, most);
    if (!found) return;
    field = static_cast<std::uint32_t>(*found);
    options.origins[std::string("limits.") + key] = reader.place_of(key);
  });
  return reader.finish();
}

Status read_tls(Reader& top, const std::string& name, Layer& layer, ProgramOptions& options) {
  const toml::table* const table = top.table("tls");
  if (table == nullptr) return {};
  Reader reader(*table, "[tls] ", name);
  const auto file = [&](const char* key, const char* flag, std::string& value) {
    layer.keep(reader, "tls.", key, flag, value, reader.take<std::string>(key, "the path of a PEM file"));
  };
  file("certificate", "--tls-cert", options.tls.certificate);
  file("key", "--tls-key", options.tls.key);
  file("client_ca", "--tls-client-ca", options.tls.client_ca);
  return reader.finish();
}

Status read_table(const toml::table& table, const std::string& name,
                  const std::function<bool(const std::string&)>& given, ProgramOptions& options) {
  Reader top(table, "", name);
  Layer layer(given, options);
  const auto keep = [&](const char* key, const char* flag, auto& value, auto found) {
    layer.keep(top, "", key, flag, value, std::move(found));
  };
  keep("threads", "--threads", options.threads, top.number("threads", 0, 1024));
  keep("plane_budget", "--plane-budget", options.plane_budget_bytes, top.bytes("plane_budget"));
  keep("devices", "--devices", options.devices,
       top.take<std::string>("devices", "\"auto\", \"none\", or UUIDs of GPUs with commas"));
  keep("device_budget", "--device-budget", options.device_budget_bytes, top.bytes("device_budget"));
  keep("drain_timeout", "--drain-timeout", options.drain_timeout_s, top.number("drain_timeout", 0, 86400));
  keep("compile_timeout", "--compile-timeout", options.compile_timeout_s,
       top.number("compile_timeout", 1, 3600));
  keep("cache_dir", "--cache-dir", options.cache_directory, top.take<std::string>("cache_dir", "a text"));
  keep("log_level", "--log-level", options.log_level, top.choice("log_level", log_levels()));
  keep("log_format", "--log-format", options.log_format, top.choice("log_format", {"text", "json"}));
  keep("metrics", "--metrics", options.metrics,
       top.take<std::string>("metrics", "a text, \"HOST:PORT\", or \"\" for none"));
  keep("web", "--web", options.web, top.take<std::string>("web", "a text, \"HOST:PORT\", or \"\" for none"));
  keep("insecure_i_know", "--insecure-i-know", options.insecure_i_know,
       top.take<bool>("insecure_i_know", "true or false"));
  EAGLE_RETURN_IF_ERROR(read_listeners(top, name, given("--listen"), options));
  EAGLE_RETURN_IF_ERROR(read_admins(top, given("--admins"), options));
  EAGLE_RETURN_IF_ERROR(read_tenants(top, name, options));
  EAGLE_RETURN_IF_ERROR(read_limits(top, name, options));
  EAGLE_RETURN_IF_ERROR(read_tls(top, name, layer, options));
  if (const toml::table* const tokens = top.table("tokens")) {
    Reader reader(*tokens, "[tokens] ", name);
    layer.keep(reader, "tokens.", "file", "--tokens", options.tokens,
               reader.take<std::string>("file", "the path of a file"));
    EAGLE_RETURN_IF_ERROR(reader.finish());
  }
  return top.finish();
}

}  // namespace

Status read_config(std::string_view text, const std::string& name,
                   const std::function<bool(const std::string&)>& given, ProgramOptions& options) {
  if (text.size() > most_config_bytes) {
    return {Reason::bad_value, "'" + name + "' has over " + std::to_string(most_config_bytes) + " bytes"};
  }
  try {
    return read_table(toml::parse(text, name), name, given, options);
  } catch (const toml::parse_error& error) {
    return {Reason::bad_value, "'" + name + "' line " + std::to_string(error.source().begin.line) + ": " +
                                   std::string(error.description())};
  }
}

StatusOr<std::string> config_file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(Reason::bad_value, "--config: '" + path + "' cannot be read");
  std::string text(most_config_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace eagle::server
