"""The test itself as a node among nodes."""

import threading
import time

from ros_process import PATIENCE


class Listener:
    """
    Messages of a topic as they come.

    ``times`` are those of receipt, by this process' clock; ``sent``, those at which the sender
    handed them to the middleware, by the wall clock [s].
    """

    def __init__(self):
        self.messages, self.times, self.sent = [], [], []
        self._news = threading.Condition()

    def __call__(self, message, info):
        with self._news:
            self.messages.append(message)
            self.times.append(time.monotonic())
            self.sent.append(1e-9 * info['source_timestamp'])
            self._news.notify_all()

    def wait_for(self, accept=lambda message: True, patience=PATIENCE, after=None):
        """Return the first accepted message of those that come from now on (``after``)."""
        end = time.monotonic() + patience
        with self._news:
            index = len(self.messages) if after is None else after % (len(self.messages) + 1)
            while True:
                while index < len(self.messages):
                    index += 1
                    if accept(self.messages[index - 1]):
                        return self.messages[index - 1]
                assert time.monotonic() < end, f'not among {self.messages[-3:]}'
                self._news.wait(0.1)


class Peer:
    """This process as one more node in the domain."""

    def __init__(self, name, domain, remap=()):
        import rclpy
        from rclpy.context import Context
        from rclpy.executors import SingleThreadedExecutor

        self.context = Context()
        rclpy.init(args=[], context=self.context, domain_id=domain)
        self.node = rclpy.create_node(name, context=self.context, cli_args=renaming(remap))
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._closing = False
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def wait_until(self, condition, what, why=lambda: ''):
        """Wait until a question is answered with yes; ``why`` tells what is known if it is not."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f'{what}: not within {PATIENCE} s {why()}'
            time.sleep(0.005)

    def listen(self, kind, topic, qos=100):
        """Return a listener once there is somebody to listen to."""
        listener = Listener()
        subscription = self.node.create_subscription(kind, topic, listener, qos)
        self.wait_until(subscription.get_publisher_count, f'somebody on {topic}')
        return listener

    def follow(self, kind, owner):
        """Return a listener to the status of a node, as objects of ``kind``."""
        from diagnostic_msgs.msg import DiagnosticStatus
        from mher_ros.ros.common.status import EVERY

        listener = Listener()

        def take(message, info):
            listener(kind.from_message(message), info)

        subscription = self.node.create_subscription(
            DiagnosticStatus, f'{owner}/status', take, EVERY
        )
        self.wait_until(subscription.get_publisher_count, f'the status of {owner}')
        return listener

    def talk(self, kind, topic, qos=10):
        """Return a publisher once somebody listens."""
        publisher = self.node.create_publisher(kind, topic, qos)
        self.wait_until(publisher.get_subscription_count, f'somebody on {topic}')
        return publisher

    def client(self, kind, service):
        client = self.node.create_client(kind, service)
        self.wait_until(client.service_is_ready, f'somebody offers {service}')
        return client

    def call(self, client, request, patience=PATIENCE):
        """Return the answer and how long it took [s]."""
        answered = threading.Event()
        began = time.monotonic()
        future = client.call_async(request)
        future.add_done_callback(lambda _: answered.set())
        assert answered.wait(patience), f'no answer from {client.srv_name}'
        return future.result(), time.monotonic() - began

    def ask(self, kind, service, **request):
        """Return the answer of a service."""
        client = self.client(kind, service)
        try:
            return self.call(client, kind.Request(**request))[0]
        finally:
            self.node.destroy_client(client)

    def figures(self, name, accept=lambda figures: True):
        """Return the figures that the node of that name tells next on /diagnostics."""
        from diagnostic_msgs.msg import DiagnosticArray

        if not hasattr(self, '_diagnostics'):
            self._diagnostics = self.listen(DiagnosticArray, '/diagnostics')
        found = {}

        def take(array):
            for status in array.status:
                if status.name == name:
                    found.clear()
                    found.update({value.key: value.value for value in status.values})
                    found.update(level=status.level, message=status.message)
                    return accept(found)
            return False

        self._diagnostics.wait_for(take)
        return found

    def close(self):
        self._closing = True
        self._thread.join()
        self._executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()

    def _spin(self):
        while not self._closing:
            self._executor.spin_once(timeout_sec=0.1)


def renaming(remap):
    """Return the arguments that have a node use other names."""
    words = [word for old, new in dict(remap).items() for word in ('-r', f'{old}:={new}')]
    return ['--ros-args', *words]
