// Published: arrays that sessions have given a name, for other sessions to open.
//
// A name belongs to the principal whose session published it and goes with that session. Who opened the array
// holds a plane over the same bytes; taking a grant back releases those planes, so that nothing new is done
// with them. Names that do not exist and names that the caller was not granted read the same.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/plane/view.h"
#include "server/held_bytes.h"
#include "server/limits.h"
#include "server/log_limit.h"
#include "server/session.h"

namespace eagle::v1 {
class NameRecord;
}

namespace eagle::server {

// Thread-safe.
class Published {
public:
  // `epoch`: how many workers there were before.
  Published(const Limits& limits, PlaneBudget& budget, std::uint32_t epoch)
      : limits_(limits), budget_(budget), last_number_(std::uint64_t{epoch} << 32) {}
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  struct Array {
    std::shared_ptr<PlaneBytes> bytes;
    plane::View view;
    bool writable = false;
    std::set<std::string> to;  // principals; "*" is everybody
    // The same when a client asks again, because a worker died before it could answer. Empty: it will not.
    std::string attempt = {};
  };
  // BAD_VALUE for a name that is taken, empty or too long, or a principal that cannot be one; QUOTA
  // (published, grantees). The name and its grants are charged: PLANE_BUDGET, QUOTA (tenant_plane_bytes).
  Status publish(const std::shared_ptr<Session>& owner, const std::string& name, Array array);

  struct Opened {
    PlaneStore::Created plane;
    plane::View view;
    bool read_only = false;
    std::string owner;
  };
  // `owner`: a principal, or empty. UNKNOWN_NAME; BAD_VALUE where several owners granted one of this name.
  StatusOr<Opened> open(const std::shared_ptr<Session>& caller, const std::string& name,
                        const std::string& owner);

  struct Withdrawn {
    std::shared_ptr<PlaneBytes> bytes;
    std::vector<std::uint64_t> sessions;  // that had opened them, and hold them no more
  };
  // Takes the grants of `from` back, of everybody and with the name where it is empty. UNKNOWN_NAME.
  StatusOr<Withdrawn> withdraw(const Session& caller, const std::string& name,
                               const std::set<std::string>& from);
  // The session has ended: its names go. Who opened one keeps it.
  void forget(const Session& owner);
  // These bytes have moved: their names are written down anew. SYSTEM.
  Status note_moved(const PlaneBytes& bytes);

  // As another worker wrote it down. BAD_MESSAGE.
  Status restore(const std::shared_ptr<Session>& owner, std::uint64_t number, const v1::NameRecord& record,
                 std::shared_ptr<PlaneBytes> bytes);
  // Once the names are there: what the session had opened.
  void restore_holder(const std::shared_ptr<Session>& session);

  // "uid:N", "token:NAME", "certificate:NAME" or "*".
  static bool is_principal(const std::string& text);

  // Of the lines that tell of names that came and went.
  [[nodiscard]] LogLimit& published_lines() { return published_lines_; }
  [[nodiscard]] LogLimit& withdrawn_lines() { return withdrawn_lines_; }

  // Sessions that hold an array of another principal, counted for each array.
  [[nodiscard]] std::size_t holders() const;

private:
  struct Holder {
    std::weak_ptr<Session> session;
    graph::PlaneId plane;
  };
  struct Entry {
    std::weak_ptr<Session> session;
    std::uint64_t session_id = 0;
    StateLog* log = nullptr;
    std::uint64_t number = 0;  // of its entry there
    Array array;
    std::multimap<std::string, Holder> holders;  // by principal, one a session
    HeldBytes costs;
  };
  using Key = std::pair<std::string, std::string>;  // owner, name

  static v1::NameRecord record_of(const std::string& name, const Entry& entry);
  static Status write_down(const std::string& name, const Entry& entry, bool moved = false);
  static Status write_down_end(const Entry& entry);
  [[nodiscard]] static bool granted(const Key& key, const Entry& entry, const std::string& principal);

  const Limits& limits_;
  PlaneBudget& budget_;
  LogLimit published_lines_;
  LogLimit withdrawn_lines_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::uint64_t last_number_;
};

}  // namespace eagle::server
