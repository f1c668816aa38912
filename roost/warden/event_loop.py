"""Event loop on epoll: tasks, futures, timers and descriptors (decision 0020).

asyncio takes 30 ms to import, more than everything else in the start of a container. Names are those of asyncio if the
meaning is, except that later results of a future are dropped.
"""

from __future__ import annotations

import select
from _thread import allocate_lock
from time import monotonic

from .light_imports import bisect, os, signal, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from typing import Any, ClassVar, Generic, TypeVar

    T = TypeVar("T")
    Timer = tuple[float, int, Callable[..., object], tuple[object, ...]]
else:
    T = None

    class Generic:
        def __class_getitem__(cls, _: object) -> type:
            return cls


READ, WRITE = select.EPOLLIN, select.EPOLLOUT
MAX_POLL_SECONDS = 3600.0


class CancelledError(BaseException):
    """The task was cancelled."""


class Future(Generic[T]):
    """Result that is set once; `await` returns it or raises its error."""

    def __init__(self) -> None:
        self._is_done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], object]] = []

    def done(self) -> bool:
        return self._is_done

    def result(self) -> T:
        """Return the result of a future that is done, or raise its error."""
        assert self._is_done
        if self._error:
            raise self._error
        return self._result

    def exception(self) -> BaseException | None:
        return self._error

    def set_result(self, result: T) -> None:
        """Set the result unless the future is done."""
        self.settle(result, None)

    def settle(self, result: T | None, error: BaseException | None) -> None:
        """Set the result or the error unless the future is done."""
        if not self._is_done:
            self._is_done, self._result, self._error = True, result, error
            for callback in self._callbacks:
                EventLoop.running.call_soon(callback, self)
            self._callbacks = []

    def add_done_callback(self, callback: Callable[[Future[T]], object]) -> None:
        if self._is_done:
            EventLoop.running.call_soon(callback, self)
        else:
            self._callbacks.append(callback)

    def remove_done_callback(self, callback: Callable[[Future[T]], object]) -> None:
        with suppress(ValueError):
            self._callbacks.remove(callback)

    def __await__(self) -> Generator[Future[T], None, T]:
        if not self._is_done:
            yield self
        return self.result()


class CoroutineTask(Future[T]):
    """Coroutine that the event loop runs from now on; its result or error is awaited somewhere."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        super().__init__()
        self._coroutine = coroutine
        self._waits_for: Future[Any] | None = None
        self._interrupts: list[BaseException] = []
        EventLoop.running.tasks.add(self)
        EventLoop.running.call_soon(self._step)

    def cancel(self) -> None:
        """Raise CancelledError in the task where it waits."""
        if not any(type(error) is CancelledError for error in self._interrupts):
            self.interrupt(CancelledError())

    def interrupt(self, error: BaseException) -> None:
        """Raise an error in the task where it waits, or where it waits next."""
        self._interrupts.append(error)
        if waits_for := self._waits_for:
            self._waits_for = None
            waits_for.remove_done_callback(self._wake)
            EventLoop.running.call_soon(self._step)

    def drop_interrupt(self, error: BaseException) -> None:
        """Forget an error that was not raised yet."""
        if error in self._interrupts:
            self._interrupts.remove(error)

    def _wake(self, future: Future[Any]) -> None:
        if future is self._waits_for:  # it was not interrupted meanwhile
            self._waits_for = None
            self._step()

    def _step(self) -> None:
        loop = EventLoop.running
        loop.current_task = self
        try:
            interrupt = self._interrupts.pop(0) if self._interrupts else None
            future = self._coroutine.throw(interrupt) if interrupt else self._coroutine.send(None)
        except StopIteration as end:
            self._end(end.value, None)
        except BaseException as error:  # noqa: BLE001 - raised where the task is awaited
            self._end(None, error)
        else:
            if self._interrupts:
                loop.call_soon(self._step)
            else:
                self._waits_for = future
                future.add_done_callback(self._wake)

    def _end(self, result: T | None, error: BaseException | None) -> None:
        EventLoop.running.tasks.discard(self)
        self.settle(result, error)


class EventLoop:
    """Loop of one thread; `report_error` gets the errors of callbacks and background tasks."""

    running: ClassVar[EventLoop]

    def __init__(self, report_error: Callable[[BaseException], object]) -> None:
        self.report_error = report_error
        self.tasks: set[CoroutineTask[Any]] = set()
        self.current_task: CoroutineTask[Any] | None = None
        self._ready: list[tuple[Callable[..., object], tuple[object, ...]]] = []  # never replaced: threads append
        self._timers: list[Timer] = []  # sorted
        self._timer_count = 0
        self._epoll = select.epoll()
        self._handlers: dict[int, dict[int, Callable[[], object]]] = {}
        self._wake_fd, self._waker_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._closed = False
        self._waker_lock = allocate_lock()  # a thread may finish its call after the end of the loop
        self.watch(self._wake_fd, READ, lambda: os.read(self._wake_fd, 4096))

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, then cancel the other tasks and wait for them."""
        EventLoop.running = self
        wakeup_fd = signal.set_wakeup_fd(self._waker_fd, warn_on_full_buffer=False)
        try:
            task = CoroutineTask(main)
            while not task.done():
                self._run_once()
            for other in [*self.tasks]:
                other.cancel()
            while self.tasks:
                self._run_once()
            return task.result()
        finally:
            signal.set_wakeup_fd(wakeup_fd)
            with self._waker_lock:
                self._closed = True
                self._epoll.close()
                os.close(self._wake_fd)
                os.close(self._waker_fd)

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        """Call a function in the next round of the loop."""
        self._ready.append((callback, args))

    def call_from_thread(self, callback: Callable[..., object], *args: object) -> None:
        """Call a function in the loop's thread; never, if the loop has ended."""
        self._ready.append((callback, args))
        with self._waker_lock, suppress(BlockingIOError):  # a full pipe wakes the loop as well
            if not self._closed:
                os.write(self._waker_fd, b"\0")

    def call_later(self, seconds: float, callback: Callable[..., object], *args: object) -> Timer:
        """Call a function after some seconds."""
        self._timer_count += 1
        timer = (monotonic() + seconds, self._timer_count, callback, args)
        bisect.insort_right(self._timers, timer)
        return timer

    def cancel_timer(self, timer: Timer) -> None:
        """Cancel a timer that may have expired."""
        index = bisect.bisect_left(self._timers, timer[:2])
        if self._timers[index : index + 1] == [timer]:
            del self._timers[index]

    def on_signal(self, number: int, callback: Callable[[], object]) -> None:
        """Call a function in the loop when the process gets a signal."""
        signal.signal(number, lambda _number, _frame: self.call_soon(callback))

    def watch(self, fd: int, event: int, callback: Callable[[], object] | None) -> bool:
        """Call a function whenever `fd` is ready for READ or WRITE; None ends that. Return whether there was one.

        Close `fd` only after that, because its number can be used again.
        """
        handlers = self._handlers.setdefault(fd, {})
        before, present = sum(handlers), handlers.pop(event, None)
        if callback:
            handlers[event] = callback
        after = sum(handlers)
        if not after:
            del self._handlers[fd]
            if before:
                self._epoll.unregister(fd)
        elif not before:
            self._epoll.register(fd, after)
        elif before != after:
            self._epoll.modify(fd, after)
        return present is not None

    def _run_once(self) -> None:
        seconds = MAX_POLL_SECONDS
        if self._ready:
            seconds = 0.0
        elif self._timers:
            seconds = min(max(self._timers[0][0] - monotonic(), 0.0), MAX_POLL_SECONDS)
        for fd, events in self._epoll.poll(seconds):
            for event, other in ((READ, WRITE), (WRITE, READ)):
                if events & ~other and (callback := self._handlers.get(fd, {}).get(event)):  # errors wake both
                    self._call(callback)
        now = monotonic()
        while self._timers and self._timers[0][0] <= now:
            _, _, callback, args = self._timers.pop(0)
            self.call_soon(callback, *args)
        ready = self._ready.copy()
        del self._ready[: len(ready)]
        for callback, args in ready:
            self._call(callback, *args)

    def _call(self, callback: Callable[..., object], *args: object) -> None:
        try:
            callback(*args)
        except Exception as error:  # noqa: BLE001 - pid 1 lives on
            self.report_error(error)
