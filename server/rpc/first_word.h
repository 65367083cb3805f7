// FirstWords: how long clients may say nothing at all in calls that they began.
//
// One alarm for all of them: setting and stopping one takes longer than many a call.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>

namespace eagle::server {

class FirstWord;

// Of calls that wait equally long. Thread-safe. When it goes, nobody is told any more.
class FirstWords {
public:
  explicit FirstWords(std::chrono::milliseconds patience);

private:
  friend FirstWord;
  struct Waiting {
    std::chrono::steady_clock::time_point until;
    std::function<void()> silent;
    FirstWord* call;
  };
  struct State;
  const std::shared_ptr<State> state_;
};

// Of one call. Thread-safe.
class FirstWord {
public:
  // Once, before anybody else can know of the call. `silent` is called when the patience is over, on a thread
  // of gRPC's, unless `came` was before; it holds what the call needs to live.
  void await(const FirstWords& all, std::function<void()> silent);
  // The client has spoken, or left. False: too late, the call is being ended.
  bool came();

private:
  friend FirstWords;
  enum class Is : unsigned char { not_awaited, awaited, heard, silent };
  std::shared_ptr<FirstWords::State> all_;
  std::list<FirstWords::Waiting>::iterator place_;
  Is is_ = Is::not_awaited;  // guarded by the lock of `all_`
};

}  // namespace eagle::server
