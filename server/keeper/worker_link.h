// WorkerLink: the worker's end of the socket to its keeper.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/quarantine.h"
#include "server/restored_state.h"
#include "server/state_log.h"

namespace eagle::v1 {
class WorkerMessage;
}

namespace eagle::server {

// What a worker starts with.
struct Inheritance {
  RestoredState state;
  UniqueFd ledger;
  std::vector<std::pair<std::string, UniqueFd>> listening;  // endpoint, socket
};

class WorkerLink final : public StateLog {
public:
  // `pace`: of what `still_starts` says.
  explicit WorkerLink(UniqueFd socket, std::chrono::milliseconds pace = std::chrono::seconds(1))
      : socket_(std::move(socket)), pace_(pace) {}

  // Takes over what the keeper holds. Before all else, and once. SYSTEM, BAD_MESSAGE.
  StatusOr<Inheritance> take_over();
  // To be called with each step of a start that has many: it goes on, however long all of them take. Of the
  // thread that starts.
  void still_starts();

  // What the keeper says afterwards. `obey` returns when the keeper is gone, for one thread; the functions
  // are called there.
  struct Orders {
    std::function<void(std::uint32_t seconds)> drain;
    std::function<void(std::uint32_t seconds)> hand_over;
    std::function<void()> hurry;
    std::function<void(std::uint64_t session)> client_died;
    std::function<void(UniqueFd text)> reload;  // of the configuration file
  };
  void obey(const Orders& orders);

  // Thread-safe. Where the keeper is gone they do nothing: `obey` tells.
  void beat(bool goes_round);  // whether the scheduler does
  void reloaded(const std::string& wrong);
  // The daemon is to end: work gets so long, or as configured.
  void end(std::optional<std::uint32_t> within_s);
  // Another worker is to take the place of this one, which is then told to hand over.
  void replace(const std::string& why, std::span<const BlamedGraph> blamed);
  void serves();
  void failed(const std::string& why);

  Status write(std::span<const StateChange> changes) override;

private:
  void say(const v1::WorkerMessage& message);
  Status write_one(const StateChange& change, bool more);
  Status send(const std::string& bytes, std::span<const int> descriptors = {});

  const UniqueFd socket_;
  const std::chrono::milliseconds pace_;
  std::chrono::steady_clock::time_point said_so_ = std::chrono::steady_clock::now();
  std::mutex mutex_;  // a batch goes out whole
};

}  // namespace eagle::server
