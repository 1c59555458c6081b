# ruff: noqa: E501 (lists of phrases)
"""Families that sort a text: ticket routing and sentiment."""

from __future__ import annotations

from typing import Any

from acceptance.tiny import labels
from acceptance.tiny.draw import Draw, up
from acceptance.tiny.made import OPENINGS, Made
from acceptance.tiny.names import parts
from acceptance.tiny.rows import ANSWER, State

# For each team: what is asked of it, and how it is described. The objects and verbs of one team
# occur with no other.
TEAMS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "access": (
        parts("cannot log in|cannot sign in|is locked out|forgot the password|lost the password|"
              "never receives the sign-in code|needs a new login|cannot reset the password|gets "
              "no reset mail|sees that the password is rejected|has trouble with the login page"),
        parts("| after a password reset| since the new login page| with the old password| because "
              "the account is locked| and the reset mail never arrives| and needs a new code"),
        parts("Account access|Log-in and passwords|Login and password help|Sign-in problems|Access "
              "team|Password and account help|Login support|Accounts and passwords|Access|Sign-in"),
    ),
    "billing": (
        parts("was charged twice|asks for a refund|sees a wrong amount on the bill|wants to pay the "
              "invoice|got a wrong invoice|asks why the card was charged|disputes a payment|wants "
              "the money back|found two payments on the card|asks for a copy of the invoice"),
        parts("| this month| for one invoice| of {n} euros| by card| for the last payment| on the "
              "third| and wants the payment returned| although the invoice was paid"),
        parts("Billing support|Payments, invoices and refunds|Payments and invoices|Refunds and "
              "bills|Billing team|Invoices and refunds|Payments support|Billing|Bills and payments"),
    ),
    "shipping": (
        parts("says the parcel has not arrived|wants to change the delivery address|received a "
              "damaged box|asks where the package is|wants a delivery|says the courier lost the "
              "parcel|waits for the package|got the parcel of somebody else|asks about the courier"),
        parts("| since {d}| next week| from the warehouse| at the door| and the tracking shows "
              "nothing| although the courier came| ordered on {d}"),
        parts("Shipping support|Delivery questions|Parcels and couriers|Shipping team|Delivery and "
              "parcels|Courier support|Shipping|Parcels and delivery|Delivery"),
    ),
    "product": (
        parts("gets an error when saving a file|sees the app crash|reports that the export button "
              "does nothing|sees a blank screen|reports that the app freezes|gets an exception in "
              "the editor|sees an error on the export screen|reports a bug in the editor"),
        parts("| on start| after an update| when saving| in the newest version| on the phone| every "
              "time| since version {n}"),
        parts("Technical bugs|Product defects|Software errors|Bug team|Errors and crashes|Software "
              "defects|Faults of the product|Bugs|Product faults and errors"),
    ),
    "sales": (
        parts("wants a quote|asks about the enterprise plan|would like a demo|asks for a volume "
              "discount|wants to buy more licences|compares the plans|asks for the price of more "
              "seats|would like to buy more seats|wants to know the price"),
        parts("| for fifty seats| before buying| for the whole company| for {n} licences| of the "
              "team plan| for next year"),
        parts("Sales questions|Quotes and plans|New purchases|Sales team|Plans and licences|"
              "Purchases and quotes|Sales|Prices and plans|Licences and quotes"),
    ),
    "staff": (
        parts("asks how many vacation days remain|wants parental leave|asks about the salary slip|"
              "wants to change the working hours|reports a sick day|asks for a work contract copy|"
              "asks about sick leave|wants more vacation days|asks about the salary"),
        parts("| for the summer| of last month| because of the new child| in {d} shifts| for the "
              "second week| as an employee"),
        parts("Human resources|Leave and salary|Staff questions|HR team|Vacation and leave|Staff "
              "and salary|HR|Employees and leave|Salary and vacation"),
    ),
}  # fmt: skip
_SUBJECTS = {
    "access": "Cannot sign in|Locked out|Password rejected|Login trouble|No reset mail",
    "billing": "Charged twice this month|Wrong invoice|Refund please|Payment question|Invoice",
    "shipping": "Parcel missing|Where is my package|Damaged box|Delivery address|Late delivery",
    "product": "App crashes|Error when saving|Blank screen|Export broken|Bug report",
    "sales": "Quote please|Price of more seats|Enterprise plan|Demo wanted|More licences",
    "staff": "Vacation days|Salary slip|Sick day|Parental leave|Working hours",
}
_OWN_WORDS = {
    "access": "I cannot sign in|my password is rejected|the reset mail never arrives, not even in the "
    "spam folder|I am locked out of my account|I forgot my password|I get no sign-in code",
    "billing": "my card shows two payments of {n} euros|my card was charged twice|please return one "
    "payment|my invoice is wrong|I paid this invoice already|I want my money back|my card shows two "
    "payments of {n} euros on the third",
    "shipping": "my parcel has not arrived|where is my package|the box came damaged|the courier did "
    "not find my door|please deliver to another address|my delivery is late",
    "product": "the app crashes when I save|I get an error on the export screen|the screen stays "
    "blank|the export button does nothing|your app freezes on my phone|I found a bug in the editor",
    "sales": "please send me a quote|what do fifty seats cost|I would like a demo|we want to buy more "
    "licences|which plan is right for us|is there a discount for {n} seats",
    "staff": "how many vacation days do I have left|my salary slip is missing|I am sick today|I want "
    "parental leave|please change my working hours|I need a copy of my work contract",
}
_WRITERS = parts(
    "the customer|a user|the client|someone|the caller|a customer|a person|{p}|the writer"
)
_ROUTE = parts(
    "Which team should take this ticket?|Which queue should handle this request?|Who should take "
    "this ticket?|Route the message.|Where does this ticket go?|Pick the team for this request.|"
    "Which team should take this request?|Where does this message go?|Which team is right for it?|"
    "To whom does this belong?|Who is to handle this?|Which desk gets this ticket?|Choose the team."
)
_TEAM_END = parts("|||.| desk|")


def routing(draw: Draw) -> Made:
    """Which team takes a ticket."""
    count = draw.options()
    teams = draw.sample(tuple(TEAMS), count)
    asks, more, _ = TEAMS[teams[0]]
    number = tuple(TEAMS).index(teams[0])
    mark = ANSWER + labels.fact_mark(labels.FACT_TEAM + number)
    said = draw.say(_WRITERS, (" ",), asks, more) + mark
    if draw.chance(0.25):
        said = draw.fill(draw.pick(parts(_OWN_WORDS[teams[0]]))) + mark
    if draw.chance(0.4):
        plain = up(said) + "."
        ticket: dict[str, Any] = {"subject": draw.pick(parts(_SUBJECTS[teams[0]])), "body": plain}
        if draw.chance(0.3):
            ticket = {"body": plain}
        if draw.chance(0.5):
            plan = draw.pick(("free", "team", "pro", "basic"))
            ticket["customer"] = {"plan": plan, "since": draw.between(2012, 2026)}
        if draw.chance(0.3):
            ticket = {"id": draw.names.number(10, 9999), **ticket}
        state: State = ticket
    else:
        state = draw.arrange([draw.around(said, 0.15)])
    end = draw.pick(_TEAM_END)
    options = [draw.pick(TEAMS[team][2]) + end for team in teams]
    made = Made("team", state, draw.say(OPENINGS, _ROUTE), options, 0, asked=labels.ROUTE)
    made.means = [labels.TEAM + tuple(TEAMS).index(team) for team in teams]
    made.verdict = made.means[0]
    return made


GOOD = parts(
    "great|excellent|lovely|reliable|fast|wonderful|perfect|helpful|pleasant|superb|solid|brilliant|"
    "well made|a joy to use|easy to use|worth the money|the best I ever had|very good|comfortable"
)
BAD = parts(
    "terrible|awful|broken|slow|useless|horrible|faulty|rude|unpleasant|bad|weak|a disaster|badly "
    "made|a pain to use|hard to use|a waste of money|the worst I ever had|very bad|disappointing"
)
_THINGS = parts(
    "the phone|this laptop|their service|the app|that hotel|the new release|the support team|our "
    "printer|the service|this phone|the chair|the headset|my order|the delivery|the bag|the lamp|the "
    "kettle|the room|this camera|the shop"
)
_GOOD_SAID = parts(
    "{x} arrived a day early, well packed|I would buy {x} again|I love {x}|I am happy with {x}|I can "
    "recommend {x}|{x} does all I need|{x} made my day|we all like {x}|I am pleased with {x}|thank "
    "you for {x}|I would buy it again|arrived a day early, well packed|I will come back for {x}|{x} surprised me in a good way"
)
_BAD_SAID = parts(
    "broke on the second day|I would not buy it again|it came a week late, badly packed|"
    "{x} broke on the second day|I would never buy {x} again|I hate {x}|I am unhappy with {x}|I "
    "cannot recommend {x}|{x} does nothing I need|{x} ruined my day|we all dislike {x}|I am angry "
    "about {x}|I want my money back for {x}|I will not come back for {x}|{x} let me down"
)
_FRAMES = parts(
    "{x} is {w}|I find that {x} is {w}|after a week {x} is still {w}|to be honest, {x} is {w}|{x} is "
    "{w} and I told my friends|{x} is {w}, honestly|{x} is {w} in every way|I think {x} is {w}|in my "
    "view {x} is {w}|{x} turned out to be {w}|all in all {x} is {w}|everybody says {x} is {w}"
)
_TURNS = parts(
    "{small}. {Main}|{main}. {Small}|{small}, but {main}|{small}; still, {main}|although {small}, {main}|{small}, yet {main}"
)
_SMALL_BAD = parts(
    "the hinge squeaks a little|the box was scratched|the colour is a bit dark|the manual is short|"
    "the cable is short|it is not cheap|the lid is a little loose"
)
_SMALL_GOOD = parts(
    "the colour is nice|the box looks good|the manual is clear|it was cheap|the shape is pretty|the "
    "cable is long|delivery was quick"
)
_FEEL = parts(
    "What is the sentiment?|How does the writer feel?|Is the review positive or negative?|What is "
    "the tone?|What does the writer think of the product?|What does the writer feel?|What is the "
    "tone of the review?|How does the writer like it?|What does the customer think?|Judge the mood.|"
    "What is the opinion?|How was it for the writer?"
)
_PLEASED = parts(
    "Positive|positive|Happy|The writer is happy.|Satisfied|The tone is positive.|Pleased on the "
    "whole|The writer is pleased.|A positive review|Content|The writer likes it.|Good|Pleased"
)
_DISPLEASED = parts(
    "Negative|negative|Unhappy|The writer is unhappy.|Dissatisfied|The tone is negative.|"
    "Disappointed on the whole|The writer is angry.|A negative review|Angry|The writer dislikes "
    "it.|Bad|Disappointed"
)
_NEITHER = parts("Neutral|Neither|No opinion|neutral|The writer has no opinion.|A neutral report")
_NO_OPINION = parts(
    "{x} has {n} parts|{x} came on {d}|I bought {x} on {d}|{x} is sold in {z}|{x} weighs {n} grams|I "
    "ordered {x} in the morning|{x} is made in {z}"
)


def _opinion(draw: Draw, good: bool) -> str:
    thing = draw.pick(_THINGS)
    if draw.chance(0.4):
        return draw.say(_GOOD_SAID if good else _BAD_SAID, x=thing)
    if draw.chance(0.25):
        word = draw.pick(BAD if good else GOOD)
        return draw.say(_FRAMES, x=thing, w="not " + word)
    word = draw.pick(GOOD if good else BAD)
    if draw.chance(0.3):
        word = f"{word} and {draw.pick(GOOD if good else BAD)}"
    return draw.say(_FRAMES, x=thing, w=word)


def sentiment(draw: Draw) -> Made:
    """What a writer thinks of something."""
    kind = draw.pick((0, 1)) if not draw.hard or draw.chance(0.8) else 2
    if kind == 2:
        said = draw.say(_NO_OPINION, x=draw.pick(_THINGS))
    else:
        said = _opinion(draw, kind == 0)
        if draw.chance(0.3 if draw.hard else 0.1):
            small = draw.pick(_SMALL_BAD if kind == 0 else _SMALL_GOOD)
            said = draw.fill(
                draw.pick(_TURNS), small=small, main=said, Small=up(small), Main=up(said)
            )
    mark = ANSWER + labels.fact_mark(labels.FACT_OPINION + kind)
    state = draw.arrange([draw.around(said, 0.2) + mark], timed=False)
    options = [draw.pick(_PLEASED), draw.pick(_DISPLEASED)]
    if kind == 2 or (draw.hard and draw.chance(0.4)):
        options.append(draw.pick(_NEITHER))
    made = Made("opinion", state, draw.say(OPENINGS, _FEEL), options, kind, asked=labels.FEEL)
    made.means = [labels.OPINION + one for one in range(len(options))]
    made.verdict = labels.OPINION + kind
    return made
