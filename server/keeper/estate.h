// Estate: what the keeper holds for its workers: the journal, and the descriptors that belong to its entries.
//
// Memory is held once, however many entries are over it: each opened array and each published name is one,
// and what clients open must not use up the descriptors that a process may have.
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
  // What another keeper left: memory by its id, and descriptors of single entries; an older one left memory
  // that way, too. BAD_MESSAGE, SYSTEM.
  static StatusOr<Estate> adopt(UniqueFd journal, std::map<StateKey, UniqueFd> descriptors,
                                std::map<std::uint64_t, UniqueFd> bytes = {});

  // A packet of a worker: a change, or a part of one. What it completes takes effect. BAD_MESSAGE for what
  // no worker sends.
  Status take(const v1::StateChange& part, std::vector<UniqueFd> descriptors);
  // The worker is gone: what it left unfinished never was.
  void drop_unfinished();
  // Of the keeper's own.
  Status put(const StateChange& change) { return journal_.apply({&change, 1}); }

  [[nodiscard]] const Journal& journal() const { return journal_; }
  // What the worker is given a descriptor of: memory with an id (then not 0), or what belongs to one entry.
  struct Given {
    std::uint64_t bytes_id = 0;
    StateKey key;
    friend auto operator<=>(const Given&, const Given&) = default;
  };
  // All but sessions, whose processes are watched here. In order.
  [[nodiscard]] std::vector<Given> for_the_worker() const;
  [[nodiscard]] const std::map<StateKey, UniqueFd>& descriptors() const { return descriptors_; }
  // Of memory, by its id.
  [[nodiscard]] std::map<std::uint64_t, int> bytes() const;
  // Calls `came` for all that is there.
  void announce() const;
  // -1: there is none.
  [[nodiscard]] int descriptor(const Given& given) const;

  // Called when a session with a process came, and when one goes; before its descriptor is closed.
  std::function<void(std::uint64_t session, int process)> came;
  std::function<void(std::uint64_t session, int process)> goes;

private:
  struct Staged {
    StateChange change;
    UniqueFd descriptor;
  };
  struct Memory {
    UniqueFd fd;
    std::size_t entries = 0;  // that are over it
  };

  explicit Estate(Journal journal) : journal_(std::move(journal)) {}
  void replace(const StateKey& key, UniqueFd fd);
  // The entry is over the memory of this id, which is closed when no entry is.
  void refer(const StateKey& key, std::uint64_t bytes_id, UniqueFd fd, bool moved);
  void drop_reference(const StateKey& key);
  void forget(const StateKey& key);
  Status commit();

  Journal journal_;
  std::map<StateKey, UniqueFd> descriptors_;  // of what has no id
  std::map<std::uint64_t, Memory> memory_;
  std::map<StateKey, std::uint64_t> over_;  // entries, and the ids of the memory that they are over
  // Of the batch under way.
  std::vector<Staged> staged_;
  bool value_goes_on_ = false;
  std::uint64_t staged_bytes_ = 0;
};

}  // namespace eagle::server
