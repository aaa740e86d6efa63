"""A process that produces the workload.

    prepare ──► the topics and all customers
    fill    ──► orders, and a change of a customer per hundred orders, as fast as possible
    run     ──► orders and changes at their rates, with the time of each order

An order is due at a fixed time, whether or not the earlier ones are acknowledged. Its age begins when it
is passed to the producer. The delay of this call on a busy machine is reported separately.
"""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.w1.orders import CUSTOMERS, ORDERS, Workload
from bench.w1.process import Process

STEP_S = 0.002  # seconds between two batches
SETTINGS = {"linger.ms": 1, "queue.buffering.max.messages": 500_000}
QUEUE_MAX = 100_000  # limit of messages that wait for the broker; beyond it the load waits
TOPIC_S = 30.0
CHANGE_EVERY = 100  # orders per change of a customer, in `fill`
END_S = 120.0  # limit for the process to end after its work


@dataclass(frozen=True, slots=True)
class Produced:
    """The messages produced since `prepare`.

    `times` has each order's time, 0.0 for orders produced by `fill`.
    """

    times: np.ndarray
    changes: int
    late_ms: np.ndarray  # of each order of the run


class Load(Process):
    """The load's process."""

    def __init__(self, brokers: str, workload: Workload) -> None:
        super().__init__("load", END_S, _serve, brokers, workload)

    def prepare(self, topics: tuple[str, ...] = ()) -> None:
        """Creates the workload's topics and `topics`, and produces all customers."""
        self.ask("prepare", topics)

    def fill(self, orders: int, changing: bool = True) -> Produced:
        """Produces `orders` more orders, with or without changes of customers.

        Waits until all are acknowledged.
        """
        self.ask("fill", orders, changing)
        return self._produced()

    def start(self, rate: float, changes: float, seconds: float | None = None) -> float:
        """Starts to produce at rates per second, for `seconds` or until `finish`.

        Returns the start time.
        """
        self._endless = seconds is None
        return float(self.ask("run", rate, changes, seconds))

    def finish(self) -> Produced:
        """Waits for the end of the run, or ends an endless one.

        Raises if the broker refused a message.
        """
        if self._endless:
            self.send(("finish",))
        return self._produced()

    def _produced(self) -> Produced:
        produced = self.answer()
        assert isinstance(produced, Produced)
        return produced


def _serve(pipe: Connection, brokers: str, workload: Workload) -> None:
    try:
        load = _Load(pipe, brokers, workload)
        while True:
            word, *arguments = pipe.recv()
            getattr(load, word)(*arguments)
    except EOFError:
        return  # the parent has ended, or has no more work
    except Exception as error:  # noqa: BLE001  # raised in the parent
        pipe.send(RuntimeError(f"the load failed: {error!r}"))


class _Load:
    def __init__(self, pipe: Connection, brokers: str, workload: Workload) -> None:
        self._pipe, self._brokers, self._workload = pipe, brokers, workload
        self._producer = Producer({"bootstrap.servers": brokers, **SETTINGS})
        self._times = array("d")
        self._changes = 0
        self._refused: KafkaError | None = None

    def prepare(self, topics: tuple[str, ...]) -> None:
        admin = AdminClient({"bootstrap.servers": self._brokers})
        for topic in admin.create_topics([NewTopic(name, 1, 1) for name in (ORDERS, CUSTOMERS, *topics)]).values():
            topic.result(TOPIC_S)
        for customer in range(self._workload.customers):
            self._produce(CUSTOMERS, self._workload.customer_message(customer))
        self._flush()
        self._pipe.send(None)

    def fill(self, orders: int, changing: bool) -> None:
        self._pipe.send(None)
        for n in range(orders):
            self._order(0.0)
            if changing and n % CHANGE_EVERY == 0:
                self._change()
            if n % 1_000 == 0:
                self._take_turns()
        self._finish(array("d"))

    def run(self, rate: float, changes: float, seconds: float | None) -> None:
        total = None if seconds is None else round(rate * seconds)
        ordered = changed = 0
        late = array("d")
        began = time.monotonic()
        self._pipe.send(began)
        while total is None or ordered < total:
            now = time.monotonic()
            due = int((now - began) * rate)
            while ordered < (due if total is None else min(due, total)):
                ordered += 1
                now = time.monotonic()
                late.append(now - began - ordered / rate)
                self._order(now)
            while changed < int((now - began) * changes):
                changed += 1
                self._change()
            self._take_turns()
            if self._pipe.poll(max(STEP_S - (time.monotonic() - now), 0.0)):
                self._pipe.recv()
                break
        self._finish(late)

    def _finish(self, late: array[float]) -> None:
        self._flush()
        self._pipe.send(Produced(np.array(self._times), self._changes, np.array(late) * 1000))

    def _order(self, time: float) -> None:
        self._produce(ORDERS, self._workload.order_message(len(self._times)))
        self._times.append(time)

    def _change(self) -> None:
        self._produce(CUSTOMERS, self._workload.change_message(self._changes))
        self._changes += 1

    def _produce(self, topic: str, message: tuple[str, str]) -> None:
        self._producer.produce(topic, key=message[0], value=message[1], on_delivery=self._delivered)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self._refused = self._refused or error

    def _take_turns(self) -> None:
        self._producer.poll(0)
        while len(self._producer) > QUEUE_MAX:
            self._producer.poll(0.1)

    def _flush(self) -> None:
        left = self._producer.flush(TOPIC_S)
        if self._refused is not None or left:
            raise RuntimeError(f"the broker did not take all messages: {self._refused or left}")
