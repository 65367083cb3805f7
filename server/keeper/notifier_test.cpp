#include "server/keeper/notifier.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace eagle::server {
namespace {

using Time = std::chrono::steady_clock::time_point;
using std::chrono::seconds;

// A service manager's end: an abstract socket of this process.
class Manager {
public:
  Manager() : name_("@eagle-notifier-test-" + std::to_string(::getpid())) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data() + 1, name_.size() - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  // The next message; empty: there is none.
  [[nodiscard]] std::string next() const {
    char text[512];
    const ssize_t size = ::recv(socket_.get(), text, sizeof text, MSG_DONTWAIT);
    return size < 0 ? "" : std::string(text, static_cast<std::size_t>(size));
  }

private:
  const std::string name_;
  const UniqueFd socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

TEST(Notifier, TellsTheManagerWhatHappens) {
  const Manager manager;
  ::setenv("NOTIFY_SOCKET", manager.name().c_str(), 1);
  Notifier notifier = Notifier::from_environment();
  EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr) << "a child would speak there, too";
  notifier.ready("serving");
  EXPECT_EQ(manager.next(), "READY=1\nSTATUS=serving");
  notifier.reloading();
  EXPECT_TRUE(manager.next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
  notifier.status("worker 2");
  EXPECT_EQ(manager.next(), "STATUS=worker 2");
  notifier.stopping("draining", std::chrono::seconds(600));
  EXPECT_EQ(manager.next(), "STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=600000000");
}

TEST(Notifier, AsksForTheRestOfTheTimeAtMostOnceASecond) {
  const Manager manager;
  ::setenv("NOTIFY_SOCKET", manager.name().c_str(), 1);
  Notifier notifier = Notifier::from_environment();
  const Time start = Time() + seconds(100);
  notifier.still_stopping(seconds(500), start);
  EXPECT_EQ(manager.next(), "EXTEND_TIMEOUT_USEC=500000000");
  notifier.still_stopping(seconds(500), start + std::chrono::milliseconds(500));
  EXPECT_EQ(manager.next(), "");
  notifier.still_stopping(seconds(-3), start + seconds(2));
  EXPECT_EQ(manager.next(), "EXTEND_TIMEOUT_USEC=1000000") << "never nothing: it is about to end";
}

TEST(Notifier, FeedsTheWatchdogFourTimesInItsInterval) {
  const Manager manager;
  ::setenv("NOTIFY_SOCKET", manager.name().c_str(), 1);
  ::setenv("WATCHDOG_USEC", "8000000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  Notifier notifier = Notifier::from_environment();
  const Time start = Time() + seconds(100);
  int fed = 0;
  for (int half_seconds = 0; half_seconds < 16; ++half_seconds) {
    notifier.goes_round(start + half_seconds * std::chrono::milliseconds(500));
    fed += manager.next() == "WATCHDOG=1" ? 1 : 0;
  }
  EXPECT_EQ(fed, 4);
}

TEST(Notifier, AWatchdogOfAnotherProcessIsNotFed) {
  const Manager manager;
  ::setenv("NOTIFY_SOCKET", manager.name().c_str(), 1);
  ::setenv("WATCHDOG_USEC", "8000000", 1);
  ::setenv("WATCHDOG_PID", "1", 1);
  Notifier notifier = Notifier::from_environment();
  notifier.goes_round(Time() + seconds(100));
  EXPECT_EQ(manager.next(), "");
}

TEST(Notifier, WithoutAManagerNothingIsSaid) {
  for (const char* nonsense : {"", "relative/path", "/no/such/socket"}) {
    ::setenv("NOTIFY_SOCKET", nonsense, 1);
    Notifier notifier = Notifier::from_environment();
    notifier.ready("serving");
    notifier.goes_round();
  }
}

}  // namespace
}  // namespace eagle::server
