"""Coroutines side by side, without an event loop."""

import pytest

from sm.tasks import Future, gather, start


def test_a_coroutine_goes_on_in_the_call_that_brings_its_news():
    news, seen = Future(), []

    async def reader():
        seen.append(await news)

    start(reader())
    assert seen == []
    news.resolve("news")
    assert seen == ["news"]


def test_results_come_in_the_order_of_the_coroutines_not_of_their_ends():
    futures, seen = [Future() for _ in range(3)], []

    async def wait(future):
        return await future

    async def all_of_them():
        seen.extend(await gather(wait(future) for future in futures))

    start(all_of_them())
    for number in (2, 0, 1):
        futures[number].resolve(number)
    assert seen == [0, 1, 2]


def test_nothing_to_gather_is_gathered_at_once():
    seen = []

    async def none():
        seen.append(await gather([]))

    start(none())
    assert seen == [[]]


def test_if_one_fails_the_others_are_cancelled_however_deep():
    futures, ended, seen = [Future() for _ in range(4)], [], []

    async def wait(number):
        try:
            await futures[number]
        finally:
            ended.append(number)

    async def pair():
        await gather([wait(2), wait(3)])

    async def all_of_them():
        try:
            await gather([wait(0), wait(1), pair()])
        except ValueError as error:
            seen.append(str(error))

    start(all_of_them())
    futures[0].resolve(None)
    futures[1].fail(ValueError("broken"))
    assert seen == ["broken"]
    assert ended == [0, 1, 2, 3]
    assert [future.abandoned for future in futures] == [False, False, True, True]
    futures[2].resolve(None)
    assert ended == [0, 1, 2, 3]


def test_one_that_fails_at_once_keeps_the_later_from_starting():
    started = []

    async def fail():
        raise ValueError("at once")

    async def other():
        started.append(1)

    async def both():
        with pytest.raises(ValueError, match="at once"):
            await gather([fail(), other()])
        started.append(2)

    start(both())
    assert started == [2]


def test_an_error_that_nobody_catches_comes_out_where_the_news_was_brought():
    news = Future()

    async def reader():
        await news
        raise ValueError("not caught")

    start(reader())
    with pytest.raises(ValueError, match="not caught"):
        news.resolve(None)


def test_only_the_first_result_of_a_future_counts():
    news, seen = Future(), []

    async def reader():
        seen.append(await news)

    news.resolve(1)
    news.resolve(2)
    news.fail(ValueError("late"))
    start(reader())
    assert seen == [1]
