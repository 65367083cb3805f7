// Conversation: a stream in which both sides speak, the daemon from several threads.
// Of a client without a session gRPC receives no message, and none is parsed that is over the method's
// limits. For the .cpp files of this folder only: it brings gRPC's headers.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/base/status.h"
#include "server/daemon.h"
#include "server/rpc/call.h"
#include "server/rpc/rpc_status.h"

namespace eagle::server {

// `Self` derives from this and has a constructor of the same arguments. The object owns itself until gRPC has
// no more use for it; who speaks later, like the events of a job, holds a copy of `self_`.
template <typename Self, typename Incoming, typename Outgoing>
class Conversation : public grpc::ServerBidiReactor<grpc::ByteBuffer, Outgoing> {
public:
  static Self* begin(const Arrival& arrival) {
    const auto self = std::make_shared<Self>(arrival);
    self->self_ = self;
    auto session = session_of(arrival.daemon, arrival.context);
    if (!session.ok()) {
      // Whoever has no session gets neither the time nor the memory for a message.
      self->ending_ = session.status();
      self->pump();
      return self.get();
    }
    self->session_ = *std::move(session);
    self->StartRead(&self->bytes_);
    self->first_word_.await(arrival.first_words, [self] {
      Conversation& conversation = *self;
      conversation.fail({Reason::deadline,
                         "the client opened the stream and said nothing for too long "
                         "(first_word_timeout)"});
    });
    return self.get();
  }

protected:
  explicit Conversation(const Arrival& arrival)
      : daemon_(arrival.daemon), context_(arrival.context), method_(arrival.method) {}

  // The client sent `incoming_`. What is wrong with it goes to `fail`, and no more is read.
  virtual Status on_message() = 0;
  // The client sends no more.
  virtual void on_client_done() = 0;
  // Sees to it that the conversation ends, with `status` unless its work ends it otherwise. Any thread.
  virtual void fail(const Status& status) = 0;

  // Starts the next write, or finishes. gRPC takes one write at a time, and nothing after Finish. Any thread,
  // without `mutex_`, after each change of what is to be written.
  void pump();

  Daemon& daemon_;
  grpc::CallbackServerContext& context_;
  std::shared_ptr<Self> self_;
  std::shared_ptr<Session> session_;
  Incoming incoming_;  // the message that came last
  HeldBytes held_;     // for it

  std::mutex mutex_;               // guards what follows
  std::deque<Outgoing> outgoing_;  // the first is being written while `writing_`
  bool writing_ = false;
  std::optional<Status> failure_;  // of the stream, which its work did not know of
  std::optional<Status> ending_;   // to finish with, once everything is written

private:
  void OnReadDone(bool ok) final;
  void OnWriteDone(bool ok) final;
  void OnDone() final {
    static_cast<void>(first_word_.came());
    self_.reset();
  }

  const Method& method_;
  FirstWord first_word_;
  grpc::ByteBuffer bytes_;  // of the read in progress
  bool finished_ = false;
};

template <typename Self, typename Incoming, typename Outgoing>
void Conversation<Self, Incoming, Outgoing>::OnReadDone(bool ok) {
  if (!first_word_.came()) return;
  if (!ok) return on_client_done();
  Status status = read(daemon_, session_->tenant().get(), method_, bytes_, incoming_, held_);
  if (status.ok()) status = on_message();
  if (!status.ok()) return fail(status);
  this->StartRead(&bytes_);
}

template <typename Self, typename Incoming, typename Outgoing>
void Conversation<Self, Incoming, Outgoing>::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (ok) {
      outgoing_.pop_front();
    } else {
      outgoing_.clear();  // the stream is broken: OnCancel tells the job
    }
  }
  pump();
}

template <typename Self, typename Incoming, typename Outgoing>
void Conversation<Self, Incoming, Outgoing>::pump() {
  const Outgoing* next = nullptr;
  Status status;
  {
    const std::lock_guard lock(mutex_);
    if (writing_ || finished_) return;
    if (!outgoing_.empty()) {
      writing_ = true;
      next = &outgoing_.front();
    } else if (ending_) {
      finished_ = true;
      status = *ending_;
    } else {
      return;
    }
  }
  if (next != nullptr) {
    this->StartWrite(next);
  } else {
    this->Finish(rpc::to_grpc(daemon_, status, context_));
  }
}

}  // namespace eagle::server
