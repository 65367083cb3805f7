#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "eagle/v1/service.grpc.pb.h"
#include "engine/run/report_message.h"
#include "server/access.h"
#include "server/protocol.h"
#include "server/rpc/peer.h"
#include "server/rpc/service.h"
#include "server/rpc/services.h"

namespace eagle::server {
namespace {

StatusOr<Principal> authenticate(const Access& access, const grpc::CallbackServerContext& context) {
  switch (access.identity) {
    case Identity::token:
      return principal_of_token(access, bearer_token(context));
    case Identity::certificate: {
      auto name = certificate_name(context);
      if (name) return remote_principal(Identity::certificate, *std::move(name));
      return Status(Reason::unauthenticated,
                    "the client's certificate has no name that can be used; give it one");
    }
    case Identity::anonymous: {
      Secret number{};
      EAGLE_RETURN_IF_ERROR(fill_random(number));
      return remote_principal(Identity::anonymous, to_hex(std::span(number).first(8)));
    }
    case Identity::user:
      break;
  }
  return Status(Reason::internal, "a TCP connection has no uid");
}

// One attachment. It owns itself until gRPC has no more use for it.
class Attachment final : public grpc::ServerBidiReactor<grpc::ByteBuffer, v1::AttachServerMessage> {
public:
  // `unnamed`: those that have not opened a session yet, of all clients.
  static Attachment* begin(const Arrival& arrival, const Access& access,
                           const std::shared_ptr<std::atomic<std::size_t>>& unnamed) {
    std::shared_ptr<Attachment> made(new Attachment(arrival, access));
    made->self_ = made;
    // Whoever is refused gets neither the time nor the memory for a message.
    const Status admitted = made->admit(unnamed);
    if (!admitted.ok()) {
      made->end(admitted);
      return made.get();
    }
    made->StartRead(&made->bytes_);
    made->first_word_.await(arrival.first_words, [made] {
      made->end(Status(Reason::deadline,
                       "expected an OpenSession, found nothing for too long (first_word_timeout)"));
    });
    return made.get();
  }

private:
  Attachment(const Arrival& arrival, const Access& access)
      : daemon_(arrival.daemon), access_(access), context_(arrival.context), method_(arrival.method) {}

  Status admit(const std::shared_ptr<std::atomic<std::size_t>>& unnamed) {
    auto known = authenticate(access_, context_);
    daemon_.note_authentication(known.status(), context_.peer());
    EAGLE_ASSIGN_OR_RETURN(principal_, std::move(known));
    const std::size_t most = daemon_.limits().unnamed_streams;
    const std::size_t before = unnamed->fetch_add(1);
    unnamed_ = {unnamed.get(), [unnamed](const void*) { unnamed->fetch_sub(1); }};
    if (before < most) return {};
    return {Reason::quota, "the daemon has " + std::to_string(most) +
                               " streams over TCP that have not opened a session yet, which is its limit "
                               "(unnamed_streams); try again soon"};
  }

  void OnReadDone(bool ok) override {
    unnamed_.reset();
    if (!first_word_.came()) return;
    if (!ok) return leave(session_ ? Status() : unreadable("an AttachClientMessage with an OpenSession"));
    HeldBytes none;  // it is small
    Status status = read(daemon_, nullptr, method_, bytes_, incoming_, none);
    if (status.ok()) status = on_message();
    if (!status.ok()) return leave(status);
    if (!closed_) StartRead(&bytes_);
  }

  Status on_message() {
    if (incoming_.has_open() && !session_) return open(incoming_.open());
    if (incoming_.has_close() && session_) {
      closed_ = true;
      daemon_.attachments().close(session_, attachment_);
      end({});
      return {};
    }
    return {Reason::bad_message, "expected one OpenSession, and then a CloseSession at the end"};
  }

  Status open(const v1::OpenSession& request) {
    EAGLE_ASSIGN_OR_RETURN(const std::uint32_t protocol, common_protocol(request.hello().protocol().min(),
                                                                         request.hello().protocol().max()));
    const Principal& principal = *principal_;
    EAGLE_RETURN_IF_ERROR(daemon_.admits(principal));
    EAGLE_RETURN_IF_ERROR(choose_lease(request.lease_s()));
    Secret secret{};
    const bool fresh = request.resume().empty();
    if (fresh) {
      Sessions::OpenOptions options;
      options.stream_lease = lease_;
      options.trace = trace_context(request.hello().traceparent()).value_or(TraceContext());
      EAGLE_ASSIGN_OR_RETURN(Sessions::Opened opened,
                             daemon_.sessions().open(principal, request.hello().client_name(), options));
      session_ = std::move(opened.session);
      secret = opened.secret;
    } else {
      EAGLE_ASSIGN_OR_RETURN(auto found,
                             daemon_.sessions().find_for_stream(to_hex(bytes_of(request.resume()))));
      // An anonymous principal is its session. Not found and not yours read the same.
      const bool anonymous =
          principal.identity == Identity::anonymous && found->principal().identity == Identity::anonymous;
      if (!anonymous && !found->principal().same_as(principal)) {
        daemon_.note_authentication({Reason::unauthenticated, "the session is another's"}, context_.peer());
        return daemon_.sessions().find({}).status();
      }
      session_ = std::move(found);
      std::copy_n(request.resume().begin(), secret.size(), reinterpret_cast<char*>(secret.data()));
    }
    auto attached = daemon_.attachments().attach(
        session_, fresh, {[self = self_] { self->lose(); }, [self = self_] { self->end({}); }});
    if (!attached.ok()) {
      session_ = nullptr;
      return attached.status();
    }
    daemon_.sessions().resumed_by_stream(*session_, request.last_launch_id());
    attachment_ = *attached;
    v1::HelloReply& hello = *outgoing_.mutable_hello();
    hello.set_protocol(protocol);
    hello.set_server_version(EAGLE_VERSION);
    hello.set_session(session_->id());
    hello.set_secret(secret.data(), secret.size());
    run::describe(run::this_host(), *hello.mutable_host());
    hello.set_survives(daemon_.survives());
    hello.set_tells_begun(true);
    outgoing_.set_lease_s(std::chrono::duration<double>(lease_).count());
    {
      const std::lock_guard lock(mutex_);
      writing_ = true;
    }
    StartWrite(&outgoing_);
    return {};
  }

  Status choose_lease(double seconds) {
    const double longest = std::chrono::duration<double>(daemon_.limits().longest_lease).count();
    if (!std::isfinite(seconds) || seconds < 0 || seconds > longest) {
      return {Reason::bad_value, "connect: lease: expected 0 (the daemon's default) to " +
                                     std::to_string(longest) + " seconds (longest_lease), found " +
                                     std::to_string(seconds)};
    }
    lease_ = daemon_.limits().lease;
    if (seconds > 0) {
      lease_ = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
    }
    return {};
  }

  static std::span<const std::uint8_t> bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
  }

  void OnWriteDone(bool) override {
    std::optional<Status> status;
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      if (ending_ && !finished_) {
        finished_ = true;
        status = ending_;
      }
    }
    if (status) Finish(rpc::to_grpc(daemon_, *status, context_));
  }

  // The stream broke, or the client says no more without having closed.
  void leave(const Status& status = {}) {
    if (session_ && !closed_) daemon_.attachments().detach(session_, attachment_, lease_);
    end(status);
  }

  // Another attachment has taken over.
  void lose() {
    const std::lock_guard lock(life_);
    if (!done_) context_.TryCancel();
  }

  void end(const Status& status) {
    {
      const std::lock_guard lock(mutex_);
      if (!ending_) ending_ = status;
      if (writing_ || finished_) return;
      finished_ = true;
    }
    Finish(rpc::to_grpc(daemon_, status, context_));
  }

  void OnDone() override {
    static_cast<void>(first_word_.came());
    {
      const std::lock_guard lock(life_);
      done_ = true;
    }
    const auto last = std::move(self_);
  }

  Daemon& daemon_;
  const Access access_;
  grpc::CallbackServerContext& context_;
  const Method& method_;
  std::shared_ptr<Attachment> self_;
  std::optional<Principal> principal_;   // once it is admitted
  std::shared_ptr<const void> unnamed_;  // until the first message has come
  FirstWord first_word_;
  grpc::ByteBuffer bytes_;
  v1::AttachClientMessage incoming_;
  v1::AttachServerMessage outgoing_;
  // Of the thread that reads: gRPC starts no read before the one before it is done with.
  std::shared_ptr<Session> session_;
  std::uint64_t attachment_ = 0;
  std::chrono::milliseconds lease_{};
  bool closed_ = false;

  std::mutex mutex_;  // guards what follows
  bool writing_ = false;
  bool finished_ = false;
  std::optional<Status> ending_;

  // Another lock than that of the reactions, which a cancel may call at once.
  std::mutex life_;
  bool done_ = false;  // the context is gone
};

class SessionsService final : public Service {
public:
  SessionsService(Daemon& daemon, Access access)
      : Service(daemon, v1::Sessions::service_full_name()), access_(std::move(access)) {
    stream<v1::AttachServerMessage>(
        "Attach", [this](const Arrival& arrival) { return Attachment::begin(arrival, access_, unnamed_); });
  }

private:
  const Access access_;
  const std::shared_ptr<std::atomic<std::size_t>> unnamed_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace

std::unique_ptr<grpc::Service> make_sessions_service(Daemon& daemon, Access access) {
  return std::make_unique<SessionsService>(daemon, std::move(access));
}

}  // namespace eagle::server
