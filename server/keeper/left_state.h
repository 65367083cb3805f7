// LeftState: what a keeper leaves to the program that takes its place in the same process (SIGUSR2): what it
// holds, as numbers of descriptors, which go through exec.
//
// It travels as a memfd: a header with the format's version, and a message (KeeperState). A version reads its
// own format and the one before; the version is that of all that is left: this message, the records of the
// journal and the ledger. So it goes up with a new kind of record, which an older program would refuse.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/state_log.h"

namespace eagle::server {

// 1: the journal's kinds up to `strike`. 2: all that there are, and the program's path. 3: memory once, by
// its id, and not with each entry that is over it. 4: the progress of a submitted run in a record of its own.
constexpr std::uint32_t left_state_version = 4;
constexpr std::uint32_t oldest_left_state_version = 3;

// Descriptors are borrowed: they are open in this process.
struct LeftState {
  std::uint32_t epoch = 0;                             // how many workers there were
  std::vector<std::pair<std::string, int>> listening;  // endpoint, socket
  std::uint64_t socket_device = 0;                     // of the unix socket's file
  std::uint64_t socket_inode = 0;
  int owner = -1;
  int journal = -1;
  int ledger = -1;
  std::map<StateKey, int> held;        // of single entries; in format 2 memory, too
  std::map<std::uint64_t, int> bytes;  // memory, by its id
  std::string program;                 // where it was started from; empty: not known
  bool again = false;                  // somebody asked for another exchange meanwhile

  // All of them.
  [[nodiscard]] std::vector<int> descriptors() const;
};

// The memfd. SYSTEM.
StatusOr<UniqueFd> write_left_state(const LeftState& state, std::uint32_t version = left_state_version);
// BAD_MESSAGE: damaged, or of a format that this version does not read. SYSTEM.
StatusOr<LeftState> read_left_state(int fd);

// Whether this program can go on with such a state. `journal` and `ledger`: as in the state, where the caller
// has them.
Status check_left_state(int state, int journal, int ledger);

// What `read_left_state` found, taken: the descriptors are owned, and closed on exec from now on.
struct Inherited {
  std::uint32_t epoch = 0;
  std::vector<std::pair<std::string, UniqueFd>> listening;
  std::uint64_t socket_device = 0;
  std::uint64_t socket_inode = 0;
  UniqueFd owner;
  UniqueFd journal;
  UniqueFd ledger;
  std::map<StateKey, UniqueFd> held;
  std::map<std::uint64_t, UniqueFd> bytes;
  std::string program;
  bool again = false;
};
// Once. As `read_left_state`; SYSTEM: a descriptor that is named is not open.
StatusOr<Inherited> take_left_state(UniqueFd state);

// Whether a descriptor goes through exec. SYSTEM.
Status set_inherited(int fd, bool inherited);

}  // namespace eagle::server
