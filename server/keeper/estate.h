// Estate: what the keeper holds for its workers: the journal, and the descriptors that belong to its entries.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/keeper/journal.h"
#include "server/state_log.h"

namespace eagle::v1 {
class StateChange;
}

namespace eagle::server {

// Not thread-safe.
class Estate {
public:
  static StatusOr<Estate> create();
  // What another keeper left. BAD_MESSAGE, SYSTEM.
  static StatusOr<Estate> adopt(UniqueFd journal, std::map<StateKey, UniqueFd> descriptors);

  // A packet of a worker: a change, or a part of one. What it completes takes effect. BAD_MESSAGE for what
  // no worker sends.
  Status take(const v1::StateChange& part, std::vector<UniqueFd> descriptors);
  // The worker is gone: what it left unfinished never was.
  void drop_unfinished();
  // Of the keeper's own.
  Status put(const StateChange& change) { return journal_.apply({&change, 1}); }

  [[nodiscard]] const Journal& journal() const { return journal_; }
  // What has a descriptor for the worker: all but sessions, whose processes are watched here. In order.
  [[nodiscard]] std::vector<StateKey> for_the_worker() const;
  [[nodiscard]] const std::map<StateKey, UniqueFd>& descriptors() const { return descriptors_; }
  // Calls `came` for all that is there.
  void announce() const;
  // A plane's memory, or the process of a session; -1: there is none.
  [[nodiscard]] int descriptor(const StateKey& key) const;

  // Called when a session with a process came, and when one goes; before its descriptor is closed.
  std::function<void(std::uint64_t session, int process)> came;
  std::function<void(std::uint64_t session, int process)> goes;

private:
  struct Staged {
    StateChange change;
    UniqueFd descriptor;
  };

  explicit Estate(Journal journal) : journal_(std::move(journal)) {}
  void replace(const StateKey& key, UniqueFd fd);
  void forget(const StateKey& key);
  Status commit();

  Journal journal_;
  std::map<StateKey, UniqueFd> descriptors_;
  // Of the batch under way.
  std::vector<Staged> staged_;
  bool value_goes_on_ = false;
  std::uint64_t staged_bytes_ = 0;
};

}  // namespace eagle::server
