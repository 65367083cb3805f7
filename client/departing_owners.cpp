#include "client/departing_owners.h"

#include <poll.h>
#include <sys/types.h>
#include <unistd.h>

#include <mutex>
#include <utility>
#include <vector>

#include "engine/base/detached.h"

namespace eagle {
namespace {

// One thread while there is somebody to wait for, which is not long.
class DepartingOwners {
public:
  // Never destroyed: owners may depart while the process ends. A forked child has no thread of its parent's,
  // nor any business with its owners.
  static DepartingOwners& of_process() {
    static std::mutex mutex;
    static DepartingOwners* made = nullptr;
    const std::scoped_lock lock(mutex);
    if (made == nullptr || made->process_ != ::getpid()) made = new DepartingOwners;
    return *made;
  }

  void add(UniqueFd descriptor, std::shared_ptr<const void> owner) {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back({std::move(descriptor), std::move(owner)});
    // Without a thread it waits for the next one that comes, which asks for a thread again.
    if (!running_) running_ = start_detached([this] { wait(); }).ok();
  }

private:
  struct One {
    UniqueFd descriptor;
    std::shared_ptr<const void> owner;
  };

  void wait() {
    std::vector<One> gone;
    while (look(gone)) gone.clear();  // without the lock: what owners do as they go is theirs
  }

  // False: nobody is left to wait for. Those that came meanwhile are seen at the next look.
  bool look(std::vector<One>& gone) {
    constexpr int look_again_ms = 20;
    std::vector<pollfd> watched;
    {
      const std::scoped_lock lock(mutex_);
      for (const One& one : waiting_) watched.push_back({one.descriptor.get(), POLLIN, 0});
    }
    ::poll(watched.data(), watched.size(), look_again_ms);
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = watched.size(); i-- > 0;) {  // others are only ever added behind
      if (watched[i].revents == 0) continue;
      gone.push_back(std::move(waiting_[i]));
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return running_ = !waiting_.empty();
  }

  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::vector<One> waiting_;
  bool running_ = false;
};

}  // namespace

void keep_until_closed(UniqueFd descriptor, std::shared_ptr<const void> owner) {
  DepartingOwners::of_process().add(std::move(descriptor), std::move(owner));
}

}  // namespace eagle
