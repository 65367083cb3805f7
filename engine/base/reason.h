// The stable reasons of errors, each with its canonical code and the builtin exception that a Python
// user would expect. One table: the wire, the manual and the Python classes are all made from it.
#pragma once

#include <cstdint>
#include <string_view>

namespace eagle {

// The canonical codes, with gRPC's numbers.
enum class Code : std::uint8_t {
  ok = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16,
};

// EAGLE_REASONS(X): X(name, WIRE_NAME, code, python class, python builtin, meaning)
// A python class of EagleError is used where no class of its own is worth having.
#define EAGLE_REASONS(X)                                                                                \
  /* kernels */                                                                                         \
  X(malformed_kernel, MALFORMED_KERNEL, invalid_argument, MalformedKernel, ValueError,                  \
    "a kernel message that does not verify: the path of the op, expected and found")                    \
  X(kernel_limit, KERNEL_LIMIT, resource_exhausted, LimitExceeded, ValueError,                          \
    "a kernel over one of the limits; the limit and its key are named")                                 \
  X(compile_failed, COMPILE_FAILED, internal, CompileFailed, RuntimeError,                              \
    "the compile helper could not compile a verified kernel, died, or ran out of time")                 \
  X(unsupported_syntax, UNSUPPORTED_SYNTAX, invalid_argument, KernelSyntaxError, TypeError,             \
    "a construct that a kernel may not use; file, line, column and what to write instead")              \
  /* planes, views, bindings */                                                                         \
  X(view_outside_plane, VIEW_OUTSIDE_PLANE, invalid_argument, EagleError, ValueError,                   \
    "a view that reaches outside its plane, or whose arithmetic overflows")                             \
  X(unknown_plane, UNKNOWN_PLANE, not_found, EagleError, ValueError,                                    \
    "no such plane in this session, or it was released")                                                \
  X(plane_torn, PLANE_TORN, failed_precondition, EagleError, RuntimeError,                              \
    "a read of an array that a launch left half written; write all of it anew, or accept it as it is")  \
  X(wrong_dtype, WRONG_DTYPE, invalid_argument, EagleError, TypeError,                                  \
    "an array of another element type than its argument's")                                             \
  X(wrong_shape, WRONG_SHAPE, invalid_argument, EagleError, ValueError,                                 \
    "an array of another shape than its argument's")                                                    \
  X(sample_mismatch, SAMPLE_MISMATCH, invalid_argument, EagleError, ValueError,                         \
    "planes of one launch with different numbers of samples")                                           \
  X(copy_bound_plane, COPY_BOUND_PLANE, invalid_argument, CopyBoundPlane, ValueError,                   \
    "an array that would have to be copied before a launch: strided or sample-major")                   \
  X(private_array, PRIVATE_ARRAY, invalid_argument, PrivateArray, ValueError,                           \
    "a node that the daemon must run, over an array that only the client can reach")                    \
  X(read_only_array, READ_ONLY_ARRAY, invalid_argument, EagleError, ValueError,                         \
    "a read-only array where a node writes")                                                            \
  X(bad_binding, BAD_BINDING, invalid_argument, EagleError, TypeError,                                  \
    "a missing, extra or doubly given argument of a kernel")                                            \
  X(plane_overlap, PLANE_OVERLAP, invalid_argument, EagleError, ValueError,                             \
    "an input and an output of one launch share some, but not all, of their bytes")                     \
  /* graphs and runs */                                                                                 \
  X(malformed_graph, MALFORMED_GRAPH, invalid_argument, EagleError, ValueError,                         \
    "a graph or run description that breaks a rule of its format")                                      \
  X(racing_siblings, RACING_SIBLINGS, invalid_argument, RacingSiblings, ValueError,                     \
    "two branches of one group, one of which writes what the other touches")                            \
  X(graph_state, GRAPH_STATE, failed_precondition, GraphState, RuntimeError,                            \
    "a call in the wrong state: launch before build, second build, add after build, an empty graph")    \
  X(graph_limit, GRAPH_LIMIT, resource_exhausted, LimitExceeded, ValueError,                            \
    "a graph over one of the limits; the limit and its key are named")                                  \
  X(mixed_devices, MIXED_DEVICES, invalid_argument, MixedDevices, ValueError,                           \
    "planes of different devices in one graph, or a backend that disagrees with them")                  \
  X(mixed_sessions, MIXED_SESSIONS, invalid_argument, EagleError, ValueError,                           \
    "arrays of two sessions in one graph or launch")                                                    \
  X(conditional_in_use, CONDITIONAL_IN_USE, invalid_argument, ConditionalInUse, ValueError,             \
    "a conditional that already belongs to another graph")                                              \
  X(scratch_plane, SCRATCH_PLANE, invalid_argument, EagleError, ValueError,                             \
    "a scratch plane where only memory will do: outside of its graph, in a callable, read first")       \
  X(derivative_kernel, DERIVATIVE_KERNEL, invalid_argument, DerivativeKernel, ValueError,               \
    "a vjp or jvp kernel in a graph: those enter through eagle.diff only")                              \
  X(unknown_name, UNKNOWN_NAME, not_found, EagleError, ValueError,                                      \
    "a name of no Param or plane of the graph, or of several; the candidates are listed")               \
  X(wrong_type, WRONG_TYPE, invalid_argument, EagleError, TypeError, "an argument of the wrong type")   \
  X(bad_value, BAD_VALUE, invalid_argument, EagleError, ValueError,                                     \
    "an argument of the right type with a value that is not allowed")                                   \
  X(busy, BUSY, failed_precondition, Busy, RuntimeError, "another call is still running on this graph") \
  X(unknown_graph, UNKNOWN_GRAPH, not_found, EagleError, ValueError,                                    \
    "no such graph: it was released, or never built, or is somebody else's")                            \
  X(unknown_run, UNKNOWN_RUN, not_found, EagleError, ValueError,                                        \
    "no such submitted run of the caller's: its lease is over, it was fetched, or it never was")        \
  X(host_call_failed, HOST_CALL_FAILED, aborted, EagleError, RuntimeError,                              \
    "a host node of the client raised; the client raises its own exception instead")                    \
  X(outcome_forgotten, OUTCOME_FORGOTTEN, aborted, EagleError, RuntimeError,                            \
    "a launch id older than the outcomes that the daemon keeps: it may have run, and will not again")   \
  /* sessions and the wire */                                                                           \
  X(no_daemon, NO_DAEMON, unavailable, DaemonUnavailable, ConnectionError,                              \
    "nothing answers at the endpoint")                                                                  \
  X(bad_endpoint, BAD_ENDPOINT, invalid_argument, EagleError, ValueError,                               \
    "an endpoint that cannot be one: unknown scheme, socket path over 107 bytes")                       \
  X(protocol_mismatch, PROTOCOL_MISMATCH, failed_precondition, ProtocolMismatch, ConnectionError,       \
    "client and daemon have no protocol version in common; both ranges are given")                      \
  X(unauthenticated, UNAUTHENTICATED, unauthenticated, EagleError, PermissionError,                     \
    "no session, or a session secret that the daemon does not know")                                    \
  X(permission_denied, PERMISSION_DENIED, permission_denied, EagleError, PermissionError,               \
    "the caller may not do this")                                                                       \
  X(session_closed, SESSION_CLOSED, failed_precondition, SessionClosed, RuntimeError,                   \
    "the session was closed; open another one")                                                         \
  X(session_forked, SESSION_FORKED, failed_precondition, SessionClosed, RuntimeError,                   \
    "a session used in a forked child; open one there")                                                 \
  X(plane_budget, PLANE_BUDGET, resource_exhausted, LimitExceeded, MemoryError,                         \
    "the daemon's budget for planes is spent")                                                          \
  X(out_of_memory, OUT_OF_MEMORY, resource_exhausted, LimitExceeded, MemoryError,                       \
    "the system has no memory for this")                                                                \
  X(quota, QUOTA, resource_exhausted, LimitExceeded, RuntimeError,                                      \
    "a bound of the session or the daemon; the bound and its key are named")                            \
  X(bad_message, BAD_MESSAGE, invalid_argument, EagleError, ValueError,                                 \
    "bytes that are not the expected message")                                                          \
  X(cancelled, CANCELLED, cancelled, EagleError, RuntimeError, "the caller cancelled")                  \
  X(deadline, DEADLINE, deadline_exceeded, DeadlineExceeded, TimeoutError, "the deadline passed")       \
  X(shutting_down, SHUTTING_DOWN, unavailable, DaemonUnavailable, ConnectionError,                      \
    "the daemon is going away; try again later")                                                        \
  X(connection_lost, CONNECTION_LOST, unavailable, DaemonUnavailable, ConnectionError,                  \
    "the daemon went away during the call")                                                             \
  X(worker_restarted, WORKER_RESTARTED, aborted, WorkerRestarted, RuntimeError,                         \
    "the daemon's worker died meanwhile and another took its place: the call may have run in part")     \
  X(graph_quarantined, GRAPH_QUARANTINED, failed_precondition, EagleError, RuntimeError,                \
    "a graph that was running at two deaths of the daemon's worker; it is not launched again")          \
  X(missing_package, MISSING_PACKAGE, failed_precondition, MissingPackage, ImportError,                 \
    "an optional package that is not installed; the command that installs it is given")                 \
  X(system, SYSTEM, internal, EagleError, RuntimeError, "a system call failed; which, and errno")       \
  X(internal, INTERNAL, internal, EagleError, RuntimeError, "a fault of eagled itself")

enum class Reason : std::uint8_t {
  none,
#define EAGLE_REASON_ENUM(name, ...) name,
  EAGLE_REASONS(EAGLE_REASON_ENUM)
#undef EAGLE_REASON_ENUM
};

struct ReasonInfo {
  Reason reason;
  std::string_view wire_name;  // "RACING_SIBLINGS"
  Code code;
  std::string_view python_class;  // of package eagle; derives from EagleError and from the builtin
  std::string_view python_builtin;
  std::string_view meaning;
};

// The row of a reason; `none` has an empty name and Code::ok.
const ReasonInfo& info(Reason reason);
Code code_of(Reason reason);
// The reason with this wire name; Reason::internal for a name that this version does not know.
Reason reason_named(std::string_view wire_name);
// "INVALID_ARGUMENT"
std::string_view name_of(Code code);

}  // namespace eagle
