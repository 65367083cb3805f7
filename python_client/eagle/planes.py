"""Arrays whose memory is on another machine or on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable

import numpy as np

from eagle import _core
from eagle._gpu_streams import refuse_while_captured
from eagle.errors import refusal

if TYPE_CHECKING:
    import numpy.typing as npt

    from eagle._imported import Source
    from eagle.session import Session

Progress = Callable[[int, int], Any]


def local_of(array: Any) -> Any:
    """The numpy array that stands for a plane; anything else as it is."""
    return array._local if isinstance(array, Plane) else array


def device_of(arrays: Iterable[Any]) -> str | None:
    """The GPU on which the first of these lies that lies on one; None where all are in memory of the host."""
    return next((array.device for array in arrays if isinstance(array, Plane) and array._device), None)


class Plane:
    """An array of a daemon that is reached over TCP, or on a GPU: it has a shape and a dtype, and its values are there.

    Bind it like an array, or a slice of it. ``plane.numpy()`` and ``np.asarray(plane)`` fetch the values,
    ``plane[...] = values`` sends some, ``float(plane)`` fetches one. Arithmetic is refused: it would fetch unseen.

    One on a GPU of this machine is memory for CUDA, too: cupy, torch, jax and warp take it as it is, by
    ``__cuda_array_interface__`` or DLPack (``torch.from_dlpack(plane)``), and nothing is copied. Its launches are over
    when they return; wait for work of your own on it before you launch.

    >>> import eagle
    >>> with eagle.connect("dns:localhost:7411") as session:  # doctest: +SKIP
    ...     x = session.full(4, 1.5)
    ...     x[1:3] = [2.0, 3.0]
    ...     x.numpy()
    array([1.5, 2. , 3. , 1.5])
    """

    # numpy's operators leave it to ours, which refuse.
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(
        self, session: Session, local: npt.NDArray[Any], device: str = "", source: Source | None = None
    ) -> None:
        self._session = session
        self._source = source  # of memory on a GPU that another package made
        self._device = device  # empty: in memory of the daemon's host
        # Addresses that stand for the daemon's bytes: numpy slices them as it would the array. What lies there is
        # where callables of graphs find the values, and nothing else.
        self._local = local

    # ---- what it is

    @property
    def session(self) -> Session:
        """The session whose array it is."""
        return self._session

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return tuple(self._local.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self._local.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._local.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._local.size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self._local.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._local.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis, over there."""
        return tuple(self._local.strides)

    @property
    def read_only(self) -> bool:
        """Whether it was granted for reading."""
        return not self._local.flags.writeable

    @property
    def device(self) -> str:
        """``"cpu"``, or the GPU as its host numbers it: ``"cuda:0"``."""
        return self._device or "cpu"

    @property
    def transport(self) -> str:
        """How values travel: ``"copy"``; of a GPU's memory also ``"cuda_vmm_fd"`` or ``"cuda_ipc"``, by which this
        process opens it, ``"cuda_import"`` of what this process made and the daemon opened, in process ``"pointer"``.
        """
        return "copy" if not self._device else str(self._listed()[3])

    @property
    def transport_why(self) -> str:
        """Why not another way."""
        if not self._device:
            return "no memfd: the session came over TCP, and descriptors travel on the daemon's unix socket only"
        return str(self._listed()[4])

    def source(self) -> Source | None:
        """Whose memory it is, of an array that was imported; None of the session's own."""
        return self._source

    def _of(self, local: npt.NDArray[Any]) -> Plane:
        """Another view of the same memory."""
        return Plane(self._session, local, self._device, self._source)

    def _listed(self) -> tuple[Any, ...]:
        return _core.plane_of(self._session._core, self._local)

    def _is_on(self, device: str | None) -> bool:
        """Whether that is where it is."""
        return device is None or device == self.device or (device == "cuda" and bool(self._device))

    # ---- for CUDA in this process

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3. The memory is opened here with the first use. Raises AttributeError for memory that is not a
        GPU's, and EagleError where this process cannot open it.
        """
        if not self._device:
            raise AttributeError(f"{self!r} is in memory of its host, which CUDA does not have")
        pointer = _core.on_device(self._session._core, self._local)[0] if self.size else 0
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (pointer, self.read_only),
            "strides": None if self._local.flags.c_contiguous else self.strides,
            "stream": None,
        }

    def _pointer(self) -> tuple[int, int, str]:
        """Its first element for CUDA here: the address, the GPU's number in this process, its UUID."""
        return _core.on_device(self._session._core, self._local)

    def __dlpack_device__(self) -> tuple[int, int]:
        """``(kDLCUDA, the GPU's number in this process)``."""
        self._check_on_gpu()
        return 2, _core.on_device(self._session._core, self._local)[1]

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule of this memory. ``stream`` needs no waiting for: what was launched is over."""
        self._check_on_gpu()
        if copy:
            raise BufferError(f"{self!r}: a copy is asked for; copy what is taken from it, or use .numpy()")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"{self!r} is on DLPack device {self.__dlpack_device__()}, not on {tuple(dl_device)}")
        versioned = max_version is not None and max_version[0] >= 1
        if self.read_only and not versioned:
            raise BufferError(f"{self!r} is read-only, which a capsule of before DLPack 1.0 cannot say")
        return _core.export_dlpack(self._session._core, self._local, self, versioned)

    def _check_on_gpu(self) -> None:
        if not self._device:
            raise BufferError(f"{self!r}: its values are on another machine; write .numpy() for them")

    # ---- parts of it, as numpy has them

    @property
    def T(self) -> Plane:
        """The same plane with its axes reversed."""
        return self._of(self._local.T)

    def reshape(self, *shape: Any) -> Plane:
        """The same elements in another shape, where that is possible without a copy."""
        view = self._local.reshape(*shape)
        if not np.may_share_memory(view, self._local) and view.size:
            raise refusal("WRONG_SHAPE", f"reshape: {self!r} would have to be copied; reshape its .numpy()")
        return self._of(view)

    def __len__(self) -> int:
        return len(self._local)

    def __getitem__(self, index: Any) -> Plane:
        """A view of a part: integers, slices, ``...`` and None, as numpy takes them. Nothing is fetched."""
        parts = index if isinstance(index, tuple) else (index,)
        for part in parts:
            if not (part is None or part is Ellipsis or isinstance(part, slice) or hasattr(part, "__index__")):
                raise refusal(
                    "WRONG_TYPE",
                    f"eagle.Plane: expected integers and slices, found {type(part).__name__}; indexing with arrays "
                    "would copy values: use .numpy()",
                )
        padded = parts if any(part is Ellipsis for part in parts) else (*parts, Ellipsis)
        return self._of(self._local[padded])

    # ---- its values

    def numpy(self, progress: Progress | None = None) -> npt.NDArray[Any]:
        """The values, as a new array of this process.

        ``progress(done, all)`` is told the bytes as they come, and stops the transfer by returning False. A transfer
        goes on where it was when the connection breaks and is back within the session's lease.
        """
        refuse_while_captured("fetching values (.numpy())")
        values = np.empty(self.shape, self.dtype)
        _core.fetch(self._session._core, self._local, values, progress)
        return values

    def send(self, values: Any, progress: Progress | None = None) -> Plane:
        """Stores ``values``, broadcast and converted as numpy assigns them; ``plane[...] = values``. Returns itself."""
        self._check_writable("send")
        refuse_while_captured("sending values")
        if isinstance(values, Plane):
            values = values.numpy()
        source: npt.NDArray[Any] = np.empty(self.shape, self.dtype)
        source[...] = values
        _core.send(self._session._core, self._local, source, progress)
        return self

    def fill(self, value: Any) -> Plane:
        """Every element gets this value; no array travels. Returns itself."""
        self._check_writable("fill")
        refuse_while_captured("filling an array")
        element = np.empty((), self.dtype)
        element[...] = value
        _core.fill(self._session._core, self._local, element.tobytes())
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        part = self[index]
        if np.ndim(value) == 0 and not isinstance(value, Plane):
            part.fill(value)
        else:
            part.send(value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError(f"eagle.Plane: its values are {self._where()}, and can be had as a copy only")
        values = self.numpy()
        return values if dtype is None else np.asarray(values, dtype)

    def item(self) -> Any:
        """The one element, as a Python number."""
        if self.size != 1:
            raise refusal("WRONG_SHAPE", f"{self!r} has {self.size} elements; take one of them, or use .numpy()")
        return self.numpy().item()

    def tolist(self) -> Any:
        """The values as Python lists."""
        return self.numpy().tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def _check_writable(self, method: str) -> None:
        if self.read_only and self._source is not None:
            raise refusal(
                "READ_ONLY_ARRAY", f"{method}: the owner of {self!r} says that its memory is not to be changed; copy it"
            )
        if self.read_only:
            raise refusal(
                "READ_ONLY_ARRAY",
                f'{method}: {self!r} was granted for reading only; ask its owner to publish it with mode="rw"',
            )

    def _given(self) -> npt.NDArray[Any]:
        """What a callable of a graph gets: its memory holds the values while it runs."""
        given: npt.NDArray[Any] = self._local.view()
        return given

    def __eagle_plane__(self) -> npt.NDArray[Any]:
        """What the C++ library makes a view from."""
        return self._local

    # ---- what it does not do

    def _refused(self, *_: Any) -> Any:
        raise refusal(
            "WRONG_TYPE",
            f"{self!r}: its values are {self._where()}; write .numpy() for them, or a kernel that computes there",
        )

    def __iter__(self) -> Any:
        self._refused()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refused
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refused
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __neg__ = __pos__ = __abs__ = __invert__ = _refused
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refused
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refused
    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = _refused
    __lt__ = __le__ = __gt__ = __ge__ = _refused
    __eq__ = _refused
    __ne__ = _refused

    def _where(self) -> str:
        return f"on {self._device}" if self._device else "on another machine"

    def __repr__(self) -> str:
        place = f" on {self._device}" if self._device else ""
        return f"<eagle.Plane {self.dtype} {self.shape}{place}>"
