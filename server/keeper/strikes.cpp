#include "server/keeper/strikes.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eagle/v1/state.pb.h"
#include "server/quarantine.h"

namespace eagle::server {
namespace {

StatusOr<v1::StrikeRecord> read(const Estate& estate, const StateKey& key) {
  EAGLE_ASSIGN_OR_RETURN(const std::string text, estate.journal().value(key));
  v1::StrikeRecord record;
  if (!record.ParseFromString(text)) return Status(Reason::bad_message, "the record of a strike is none");
  return record;
}

Status drop_oldest(Estate& estate) {
  const std::vector<StateKey> keys = estate.journal().keys_of({0, StateKind::strike, 0});
  if (keys.size() < most_strikes) return {};
  std::optional<StateKey> oldest;
  std::int64_t oldest_ns = 0;
  for (const StateKey& key : keys) {
    EAGLE_ASSIGN_OR_RETURN(const v1::StrikeRecord record, read(estate, key));
    if (oldest && record.last_ns() >= oldest_ns) continue;
    oldest = key;
    oldest_ns = record.last_ns();
  }
  return estate.put({*oldest, true, {}, -1});
}

}  // namespace

StatusOr<std::uint32_t> strike(Estate& estate, const GraphHash& hash, std::int64_t now_ns,
                               const std::string& tenant, const std::string& graph) {
  const std::string_view bytes(reinterpret_cast<const char*>(hash.data()), hash.size());
  StateChange change;
  change.key = strike_key(hash);
  v1::StrikeRecord record;
  if (estate.journal().has(change.key)) {
    EAGLE_ASSIGN_OR_RETURN(record, read(estate, change.key));
  } else {
    EAGLE_RETURN_IF_ERROR(drop_oldest(estate));
  }
  if (record.hash() != bytes) record = v1::StrikeRecord();
  record.set_hash(std::string(bytes));
  record.set_deaths(record.deaths() + 1);
  record.set_last_ns(now_ns);
  if (!tenant.empty()) {
    record.set_tenant(tenant);
    record.set_graph(graph);
  }
  change.value = record.SerializeAsString();
  EAGLE_RETURN_IF_ERROR(estate.put(change));
  return record.deaths();
}

}  // namespace eagle::server
