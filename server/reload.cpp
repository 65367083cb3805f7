#include "server/reload.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/access.h"
#include "server/activation.h"
#include "server/sockets/listening_socket.h"
#include "server/sockets/tcp_socket.h"
#include "server/tcp_serving.h"
#include "server/tls_files.h"

namespace eagle::server {
namespace {

Tenants::Rules rules_of(const std::map<std::string, TenantPolicy>& tenants) {
  return {tenant_name_of, [tenants](const std::string& name) {
            auto found = tenants.find(name);
            if (found == tenants.end()) found = tenants.find("*");
            return found == tenants.end() ? TenantPolicy() : found->second;
          }};
}

}  // namespace

void follow(const ProgramOptions& options, Daemon& daemon) {
  daemon.sessions().tenants().set_rules(rules_of(options.tenants));
  daemon.sessions().set_admins(admins_of(options));
  daemon.set_limits(within_descriptors(options.limits, descriptors_allowed()));
}

std::uint64_t descriptors_allowed() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

Status check(const ProgramOptions& options, const std::shared_ptr<Tokens>& tokens) {
  EAGLE_RETURN_IF_ERROR(check(options.tls));
  for (const ListenOptions& listener : options.listen) {
    const bool tcp = listener.endpoint.starts_with("dns:");
    EAGLE_RETURN_IF_ERROR(tcp ? tcp_address(listener.endpoint).status()
                              : unix_path(listener.endpoint).status());
    EAGLE_RETURN_IF_ERROR(access_of(listener, options.tls, tokens).status());
  }
  for (const HttpService& service : http_services) {
    const std::string& address = options.*service.address;
    if (address.empty() || tcp_address("dns:" + address).ok()) continue;
    return {Reason::bad_value, std::string(service.name) + ": expected HOST:PORT, as " + service.usual +
                                   ", found '" + address + "'"};
  }
  return {};
}

Status reload(ProgramOptions& options, Daemon& daemon, const std::optional<std::string>& text) {
  EAGLE_ASSIGN_OR_RETURN(ProgramOptions wanted, parse_again(options, text));
  std::shared_ptr<Tokens> tokens;
  if (!wanted.tokens.empty()) {
    EAGLE_ASSIGN_OR_RETURN(tokens, Tokens::load(wanted.tokens));
  }
  EAGLE_RETURN_IF_ERROR(check(wanted, tokens));
  // Nothing fails from here on.
  follow(wanted, daemon);
  if (options.loaded_tokens && tokens) options.loaded_tokens->replace_by(*tokens);
  spdlog::set_level(spdlog::level::from_str(wanted.log_level));

  std::string left;
  for (const std::string& key : need_a_restart(options, wanted)) left += (left.empty() ? "" : ", ") + key;
  if ((options.loaded_tokens == nullptr) != (tokens == nullptr))
    left += (left.empty() ? "" : ", ") + std::string("tokens");
  if (!left.empty()) spdlog::warn("reload: what changed of {} holds from the next start on", left);
  spdlog::info("reload: the configuration holds: {} tenants, {} tokens, log_level={}", wanted.tenants.size(),
               tokens ? tokens->size() : 0, wanted.log_level);
  // What stays is what there was: a second reload compares with it.
  options.tenants = std::move(wanted.tenants);
  options.admins = std::move(wanted.admins);
  options.limits = wanted.limits;
  options.log_level = std::move(wanted.log_level);
  options.drain_timeout_s = wanted.drain_timeout_s;
  const std::vector<std::string> stay = need_a_restart(options, wanted);
  for (const auto& [key, origin] : wanted.origins) {
    if (std::find(stay.begin(), stay.end(), key) == stay.end()) options.origins[key] = origin;
  }
  return {};
}

}  // namespace eagle::server
