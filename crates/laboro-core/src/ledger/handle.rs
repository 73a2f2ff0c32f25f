//! Handles: where something stands in its slab. Each kind is a type of its own, so that a worker's handle is never
//! taken for a task's. They mean nothing outside this process and are never journaled; ids are what peers know.

/// A place in a slab.
pub(crate) trait Handle: Copy {
    fn from_number(number: u32) -> Self;
    fn number(self) -> u32;
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u32);

        #[allow(dead_code, reason = "not every kind needs all of them")]
        impl $name {
            /// Points nowhere.
            pub(crate) const NONE: $name = $name(u32::MAX);

            /// Its place in a table beside the slab.
            pub(crate) fn at(self) -> usize {
                self.0 as usize
            }

            pub(crate) fn some(self) -> Option<$name> {
                (self != $name::NONE).then_some(self)
            }
        }

        impl Handle for $name {
            fn from_number(number: u32) -> $name {
                $name(number)
            }

            fn number(self) -> u32 {
                self.0
            }
        }
    )*};
}

handles! {
    /// The record of a task, or of the gate that stands for an array.
    TaskHandle
    JobHandle
    WorkerHandle
    LeaseHandle
    LaneHandle
    ClassHandle
    ProfileHandle
    OwnerHandle
    /// What an owner has in a group.
    AccountHandle
    /// The lanes of one account in one class.
    QueueHandle
    EdgeHandle
    /// An offer of a worker that waits.
    OfferHandle
}
