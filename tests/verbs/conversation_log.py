"""What two engines say to each other in random conversations, as a digest; says which of their forms ran.

python -m tests.verbs.conversation_log [compiled]
"""

import hashlib
import random
import sys

if sys.argv[1:] == ["compiled"]:
    import cosim  # noqa: F401 - which takes the compiled form if there is one

from tests.verbs.random_traffic import Conversation, fate_of
from verbs import adapter


def main() -> None:
    draw = random.Random(20)
    digest = hashlib.sha256()
    packets = 0
    for _ in range(12):
        talk = Conversation(("engine", "engine"), draw, fate_of(draw, 0.02, 0.02, 200), receives=3)
        talk.go_on(30)
        talk.end_badly(draw.randrange(2)) if draw.random() < 0.5 else talk.go_on(30)
        for side, data in talk.wire.log:
            digest.update(bytes([side]) + data)
        digest.update(repr([(talker.sends(), talker.receives()) for talker in talk.talkers]).encode())
        digest.update(repr(talk.wire.now).encode())
        packets += talk.packets
    print(adapter.__file__.rpartition(".")[2], packets, digest.hexdigest())


if __name__ == "__main__":
    main()
