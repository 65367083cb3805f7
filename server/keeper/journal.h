// Journal: the entries of the state log, in a memfd.
//
// The file is a header and then records, appended: each has its length and a checksum. An entry is what the
// last record with its key says. When most of the file is history it is written anew, into another memfd.
// The keeper is the only writer; a worker gets a read-only descriptor and reads what was committed by then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/state_log.h"

namespace eagle::server {

// Not thread-safe.
class Journal {
public:
  using Values = std::map<StateKey, std::string>;

  static StatusOr<Journal> create();
  // One that another keeper wrote, to go on with. As `read`.
  static StatusOr<Journal> adopt(UniqueFd file);
  // What is committed in such a file. BAD_MESSAGE: a record that is not as it was written, or a format that
  // this version does not know.
  // `each`, which may be empty, is called after each record.
  static StatusOr<Values> read(int fd, const std::function<void()>& each = {});

  // Appends, and commits all of it at once. An entry whose session has none of its own is left out.
  // SYSTEM leaves the journal as it was.
  Status apply(std::span<const StateChange> changes);

  [[nodiscard]] int fd() const { return file_.get(); }
  // For another process: it cannot be written to through it.
  [[nodiscard]] StatusOr<UniqueFd> reader() const;
  [[nodiscard]] bool has(const StateKey& key) const { return live_.count(key) != 0; }
  [[nodiscard]] std::vector<StateKey> keys() const;  // in order: each session before what it holds
  // Of this session and kind, from this id on; in order.
  [[nodiscard]] std::vector<StateKey> keys_of(const StateKey& first) const;
  // Of an entry that there is. SYSTEM, BAD_MESSAGE.
  [[nodiscard]] StatusOr<std::string> value(const StateKey& key) const;
  [[nodiscard]] std::size_t bytes() const { return end_; }

private:
  struct Place {
    std::uint64_t offset = 0;  // of the record
    std::uint64_t bytes = 0;
  };
  using Live = std::map<StateKey, Place>;

  explicit Journal(UniqueFd file) : file_(std::move(file)) {}
  Status commit(std::uint64_t end);
  Status append(const std::string& records);
  static void apply_to(Live& live, const StateChange& change, const Place& place);
  Status look_for_history();
  Status compact();

  // Below this, history is not worth writing the file anew.
  static constexpr std::uint64_t small_bytes = 1u << 20;

  UniqueFd file_;
  std::uint64_t end_ = 0;
  std::uint64_t look_at_ = small_bytes;  // when to count what is history
  Live live_;
};

}  // namespace eagle::server
