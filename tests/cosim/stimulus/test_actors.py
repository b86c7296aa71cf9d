"""Entries for several runs, and what one actor did in another run."""

from cosim.stimulus.actors import ActorGroup, Replay, Shared, drawn_until
from wire.stimulus import Post

POSTS = [Post(cycle, 0, 0, bytes(20)) for cycle in (3, 5, 5, 9)]


class Leading:
    """Posts what it has, and goes to a cycle that it is told."""

    def __init__(self) -> None:
        self.reach = 0
        self.posted: Shared[Post] = Shared()
        self.queue = self.posted.queue()

    def until(self, finished: int) -> int:
        return max(finished, self.reach)

    def posts_until(self, cycle: int):
        return drawn_until(self.queue, cycle)

    def delivered(self, delivery) -> None:
        pass

    def taken(self, taking) -> None:
        pass


def test_every_run_gets_every_entry_once_and_none_is_kept():
    shared: Shared[Post] = Shared()
    first, second = shared.queue(), shared.queue()
    for post in POSTS:
        shared.append(post)
    assert list(drawn_until(first, 5)) == POSTS[:3]
    assert list(drawn_until(first, 9)) == POSTS[3:]
    assert list(drawn_until(second, 9)) == POSTS
    assert not first
    assert not second


def test_a_replay_goes_as_far_as_its_leader_and_posts_the_same():
    leader = Leading()
    replay = Replay(leader)
    assert replay.until(0) == 0
    leader.reach = 8
    for post in POSTS:
        leader.posted.append(post)
    assert replay.until(0) == 8
    assert list(replay.posts_until(8)) == POSTS[:3]
    assert replay.until(8) == 8


def test_a_group_goes_as_far_as_the_least_of_those_that_still_run():
    first, second = Leading(), Leading()
    group = ActorGroup([first, second])
    first.reach, second.reach = 100, 40
    assert group.until(10) == 40
    assert group.until(40) == 100
    assert group.until(100) == 100
    first.posted.append(POSTS[1])
    second.posted.append(POSTS[0])
    assert list(group.posts_until(9)) == POSTS[:2]
