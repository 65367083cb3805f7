#include "server/quarantine.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "eagle/v1/state.pb.h"
#include "server/fault_point.h"

namespace eagle::server {

StateKey strike_key(const GraphHash& hash) {
  StateKey key{0, StateKind::strike, 0};
  std::memcpy(&key.id, hash.data(), sizeof key.id);
  return key;
}

Status Quarantine::restore(const std::string& text) {
  v1::StrikeRecord record;
  Strike strike;
  if (!record.ParseFromString(text) || record.hash().size() != strike.hash.size()) {
    return {Reason::bad_message, "the record of a graph that was running at a death is none"};
  }
  std::copy(record.hash().begin(), record.hash().end(), strike.hash.begin());
  strike.deaths = record.deaths();
  strike.tenant = record.tenant();
  strike.graph = record.graph();
  strike.last = Clock::time_point(std::chrono::nanoseconds(record.last_ns()));
  const std::lock_guard lock(mutex_);
  strikes_[strike.hash] = std::move(strike);
  return {};
}

bool Quarantine::has_unnamed() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(strikes_.begin(), strikes_.end(),
                     [](const auto& one) { return one.second.tenant.empty(); });
}

Status Quarantine::name(const GraphHash& hash, const std::string& tenant, const std::string& graph) {
  const std::lock_guard lock(mutex_);
  const auto found = strikes_.find(hash);
  if (found == strikes_.end() || !found->second.tenant.empty()) return {};
  Strike& strike = found->second;
  strike.tenant = tenant;
  strike.graph = graph;
  if (log_ == nullptr) return {};
  v1::StrikeRecord record;
  record.set_hash(hash.data(), hash.size());
  record.set_deaths(strike.deaths);
  record.set_tenant(tenant);
  record.set_graph(graph);
  record.set_last_ns(std::chrono::nanoseconds(strike.last.time_since_epoch()).count());
  StateChange change;
  change.key = strike_key(hash);
  change.value = record.SerializeAsString();
  fault_point("strike.name");
  return log_->write({&change, 1});
}

std::uint32_t Quarantine::deaths_of(const std::string& tenant, Clock::time_point now) const {
  std::uint32_t deaths = 0;
  for (const auto& [hash, strike] : strikes_) {
    if (strike.tenant == tenant && now - strike.last < struck_for) deaths += strike.deaths;
  }
  return deaths;
}

Status Quarantine::check(const GraphHash& hash, const std::string& tenant, const std::string& graph,
                         Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  if (strikes_.empty()) return {};
  const auto struck = strikes_.find(hash);
  if (struck != strikes_.end() && struck->second.quarantined()) {
    return {Reason::graph_quarantined,
            "graph '" + graph + "' was running when a worker died, " + std::to_string(deaths_to_quarantine) +
                " times, and is not built or launched again by this daemon (" + text_of(hash) +
                "); change the graph, or ask an admin to pardon it "
                "(eaglectl pardon) once the cause is gone"};
  }
  const std::uint32_t deaths = deaths_of(tenant, now);
  if (deaths < deaths_of_a_tenant) return {};
  return {
      Reason::graph_quarantined,
      "graphs of tenant '" + tenant + "' were running at " + std::to_string(deaths) +
          " deaths of a worker within an hour, and none of its graphs is built until that is over; find out "
          "which one ends the worker, or ask an admin to pardon the tenant (eaglectl pardon --tenant)"};
}

std::vector<Quarantine::Strike> Quarantine::list() const {
  std::vector<Strike> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [hash, strike] : strikes_) all.push_back(strike);
  return all;
}

std::vector<std::string> Quarantine::tenants(Clock::time_point now) const {
  std::set<std::string> names;
  const std::lock_guard lock(mutex_);
  for (const auto& [hash, strike] : strikes_) {
    if (!strike.tenant.empty() && deaths_of(strike.tenant, now) >= deaths_of_a_tenant)
      names.insert(strike.tenant);
  }
  return {names.begin(), names.end()};
}

StatusOr<std::size_t> Quarantine::forget(const std::vector<GraphHash>& hashes) {
  std::vector<StateChange> changes;
  for (const GraphHash& hash : hashes) changes.push_back({strike_key(hash), true, {}, -1});
  fault_point("strike.pardon");
  if (log_ != nullptr && !changes.empty()) EAGLE_RETURN_IF_ERROR(log_->write(changes));
  for (const GraphHash& hash : hashes) strikes_.erase(hash);
  return hashes.size();
}

StatusOr<std::size_t> Quarantine::pardon_graphs(const std::vector<std::string>& texts) {
  const std::lock_guard lock(mutex_);
  std::set<GraphHash> hashes;
  for (const std::string& text : texts) {
    const auto found = std::find_if(strikes_.begin(), strikes_.end(),
                                    [&](const auto& one) { return text_of(one.first) == text; });
    if (found == strikes_.end()) {
      return Status(Reason::unknown_graph,
                    "pardon: expected a graph that was running when a worker died, as the list "
                    "of them names it (32 hexadecimal digits), found '" +
                        text.substr(0, 64) + "'");
    }
    hashes.insert(found->first);
  }
  return forget({hashes.begin(), hashes.end()});
}

StatusOr<std::size_t> Quarantine::pardon_tenant(const std::string& tenant) {
  const std::lock_guard lock(mutex_);
  std::vector<GraphHash> hashes;
  for (const auto& [hash, strike] : strikes_) {
    if (strike.tenant == tenant) hashes.push_back(hash);
  }
  return forget(hashes);
}

StatusOr<std::size_t> Quarantine::pardon_all() {
  const std::lock_guard lock(mutex_);
  std::vector<GraphHash> hashes;
  for (const auto& [hash, strike] : strikes_) hashes.push_back(hash);
  return forget(hashes);
}

}  // namespace eagle::server
