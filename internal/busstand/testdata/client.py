"""What another client of Service Bus does with the stand-in; every assert is a test.

Usage: client.py CONNECTION_STRING. The queue "cpu" must be there and empty.
"""

import datetime
import sys

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import MessageLockLostError, MessageNotFoundError, MessagingEntityNotFoundError


def receive(receiver, count):
    got = []
    while len(got) < count:
        some = receiver.receive_messages(max_message_count=count - len(got), max_wait_time=10)
        assert some, f"only {len(got)} of {count} messages came"
        got += some
    return got


def after(**kw):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**kw)


def settle(sender, receiver):
    sender.send_messages(ServiceBusMessage("one", message_id="1", application_properties={"k": "v"}))
    batch = sender.create_message_batch()
    for i in range(2, 5):
        batch.add_message(ServiceBusMessage(f"m{i}", message_id=str(i)))
    sender.send_messages(batch)
    got = receive(receiver, 4)
    assert [(m.message_id, str(m), m.delivery_count, m.sequence_number) for m in got] == [
        ("1", "one", 0, 1), ("2", "m2", 0, 2), ("3", "m3", 0, 3), ("4", "m4", 0, 4)], got
    assert got[0].application_properties == {b"k": b"v"}, got[0].application_properties
    until = receiver.renew_message_lock(got[0])
    assert after(seconds=30) < until < after(seconds=90), until
    receiver.complete_message(got[0])
    receiver.abandon_message(got[1])
    receiver.dead_letter_message(got[2], reason="why", error_description="how")
    receiver.complete_message(got[3])
    again = receive(receiver, 1)[0]
    assert (again.message_id, again.delivery_count) == ("2", 1), again
    assert [m.message_id for m in receiver.peek_messages(10, sequence_number=1)] == ["2"]
    receiver.complete_message(again)
    try:
        receiver.renew_message_lock(got[3])
        raise AssertionError("a settled message was renewed")
    except (MessageLockLostError, MessageNotFoundError, ValueError):
        pass
    assert receiver.peek_messages(10, sequence_number=1) == []


def schedule(sender, receiver):
    sender.schedule_messages(ServiceBusMessage("later", message_id="9"), after(milliseconds=200))
    never = sender.schedule_messages(ServiceBusMessage("never", message_id="10"), after(hours=1))
    sender.cancel_scheduled_messages(never)
    later = receive(receiver, 1)[0]
    assert str(later) == "later", later
    receiver.complete_message(later)
    assert receiver.peek_messages(10, sequence_number=1) == []


def main(connection_string):
    with ServiceBusClient.from_connection_string(connection_string, retry_total=0) as client:
        with client.get_queue_sender("cpu") as sender, client.get_queue_receiver("cpu") as receiver:
            settle(sender, receiver)
            schedule(sender, receiver)
        with client.get_queue_receiver("cpu", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
            letter = receive(receiver, 1)[0]
            assert (letter.message_id, letter.dead_letter_reason, letter.dead_letter_error_description) == ("3", "why", "how"), letter
            receiver.complete_message(letter)
        try:
            with client.get_queue_receiver("absent") as receiver:
                receiver.peek_messages(1)
            raise AssertionError("a queue that does not exist was opened")
        except MessagingEntityNotFoundError:
            pass
    print("all asserts hold")


main(sys.argv[1])
