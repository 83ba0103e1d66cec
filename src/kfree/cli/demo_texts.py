"""Messages to the help desk of a shop, put together from sentences that were written for this."""

from typing import Any

#: What people write about, and what they say then; a name in braces is one of the words below.
_SUBJECTS: dict[str, tuple[str, ...]] = {
    "parcels": (
        "My parcel should have been here on {day}, and it is still not.",
        "The tracking page says that the parcel left the depot on {day}.",
        "The courier rang once and drove off with my parcel.",
        "The driver left it with a neighbour whom I do not know.",
        "According to the tracking number the delivery was made, but nobody was at home.",
        "The box came open, and the tape of the parcel was torn.",
        "Could the courier bring it to the pickup point at the station?",
        "I changed the address before delivery, and the driver went to the old address.",
        "The delivery window was {day} morning, and the van came at night.",
        "The depot says the parcel goes back to the sender tomorrow.",
        "I need the parcel before {day}, is an express delivery possible?",
        "Tracking has not moved for a week, so please ask the depot.",
    ),
    "refunds": (
        "I returned the {thing} two weeks ago and have no refund yet.",
        "The refund is on the wrong card, please send it to my bank account.",
        "My invoice shows the {thing} twice, so I was charged twice.",
        "The voucher was not taken off the price at the checkout.",
        "Please send me an invoice with the tax on it for my accountant.",
        "I paid by card, and my bank shows two charges for one order.",
        "How long does a refund to a bank account take?",
        "The discount of the voucher is missing on the invoice.",
        "I would like the money back and not a voucher.",
        "The amount on my card is higher than the price on the invoice.",
        "You charged me for the return, although the page says that it is free.",
        "Please cancel the payment, the bank says it is still pending.",
    ),
    "sizes": (
        "The {garment} is too tight at the shoulders, I need a larger size.",
        "The sleeves of the {garment} are far too long for me.",
        "In the size chart a medium has a wider waist than this one.",
        "The colour of the {garment} is darker than in the picture.",
        "The fabric shrank in the first wash, and now it fits my daughter.",
        "Can I exchange the {garment} for one size smaller?",
        "Is the {garment} cut narrow at the hips, or true to size?",
        "The seam at the waist came apart after one wash.",
        "The fabric is thinner than I thought and itches at the collar.",
        "Your size chart has inches only, what is the waist in centimetres?",
        "I ordered medium and small to see which one fits.",
        "The zip of the {garment} is stuck, and the lining is torn at the sleeve.",
    ),
    "accounts": (
        "I cannot log in, the page says that my password is wrong.",
        "The link to reset the password has expired before I could open it.",
        "Since the update the app closes when I open my basket.",
        "The app shows the account of my brother, we share a tablet.",
        "I never get the code that is sent to my phone when I log in.",
        "Please delete my account and the email address in it.",
        "The website does not load in my browser, only a white screen.",
        "My email address has changed, and I cannot change it in the app.",
        "After the update the app wants a password for every click.",
        "I have two accounts with one email and would like to merge them.",
        "The newsletter goes to an old email although I clicked the link to stop it.",
        "The screen freezes in the app when I log in with my phone.",
    ),
    "appliances": (
        "The {machine} does not heat any more and smells of burnt plastic.",
        "The {machine} makes a loud noise and leaks water on the floor.",
        "Which filter belongs into the {machine}, and where is it in the manual?",
        "The plug of the {machine} gets hot, is that safe?",
        "The manual of the {machine} is in a language that I do not read.",
        "The {machine} switches itself off after a minute, a red light blinks.",
        "Is a broken handle covered by the warranty?",
        "A technician came to repair the {machine}, and it leaks again.",
        "I need a spare part for the {machine}, the lid is cracked.",
        "The motor of the {machine} hums, but nothing turns.",
        "Is the warranty two years, and do I need to keep the carton for a repair?",
        "The light blinks red, and the manual does not say why.",
    ),
}
#: What is said whatever it is about.
_FRAME = (
    ("Hello,", "Good morning,", "Dear team,", "Hi there,"),
    ("Thank you for your help.", "Please let me know.", "Thanks.", "What can be done?", "Please write to me."),
)
_WORDS: dict[str, tuple[str, ...]] = {
    "day": ("Monday", "Tuesday", "Thursday", "Friday", "Saturday"),
    "thing": ("lamp", "chair", "kettle", "coat", "rug", "mirror"),
    "garment": ("coat", "shirt", "jacket", "dress", "pullover"),
    "machine": ("kettle", "toaster", "blender", "coffee machine", "vacuum cleaner"),
}
#: How often each subject is written about.
_SHARES = (0.3, 0.22, 0.2, 0.16, 0.12)
#: Sentences of a message about one subject, and of the second subject that some have.
_FIRST, _SECOND = 5, 3
#: One message in so many is about two subjects.
_TWO = 4


def messages(n: int, rng: Any) -> list[str]:
    """So many messages, a line each."""
    return [_message(rng, 2 if i % _TWO == 0 else 1) for i in rng.permutation(n)]


def _message(rng: Any, subjects: int) -> str:
    about = rng.choice(list(_SUBJECTS), subjects, replace=False, p=_SHARES)
    said = [_FRAME[0][rng.integers(len(_FRAME[0]))]]
    for name, length in zip(about, (_FIRST, _SECOND)):
        sentences = _SUBJECTS[name]
        said += [sentences[i] for i in rng.permutation(len(sentences))[:length]]
    said.append(_FRAME[1][rng.integers(len(_FRAME[1]))])
    words = {name: some[rng.integers(len(some))] for name, some in _WORDS.items()}
    return " ".join(said).format(**words)
